/* Makes communicators and groups by each constructor of MPI, has them renewed, and says all that
 * can be seen of them: the lines must be those of a run without renewals. */
#include "renewing.h"

/* --- communicators */

static void say_cartesian(const char* what, MPI_Comm comm) {
  int count = 0, dims[8], periods[8], coords[8], from = 0, to = 0;
  MPI_Cartdim_get(comm, &count);
  MPI_Cart_get(comm, count, dims, periods, coords);
  for (int i = 0; i < count; ++i) {
    MPI_Cart_shift(comm, i, 1, &from, &to);
    say("%s dim %d: %d %d at %d from %d to %d", what, i, dims[i], periods[i], coords[i], from, to);
  }
}

static void say_graph(const char* what, MPI_Comm comm) {
  int nodes = 0, edges = 0, own = 0, count = 0, neighbours[64];
  MPI_Graphdims_get(comm, &nodes, &edges);
  MPI_Comm_rank(comm, &own);
  MPI_Graph_neighbors_count(comm, own, &count);
  MPI_Graph_neighbors(comm, own, 64, neighbours);
  say("%s graph: %d nodes %d edges", what, nodes, edges);
  for (int i = 0; i < count; ++i) say("%s neighbour %d", what, neighbours[i]);
}

static void say_distributed(const char* what, MPI_Comm comm) {
  int in = 0, out = 0, weighted = 0, sources[64], weights[64], targets[64], more[64];
  MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  MPI_Dist_graph_neighbors(comm, in, sources, weights, out, targets, more);
  for (int i = 0; i < in; ++i) say("%s from %d %d", what, sources[i], weighted ? weights[i] : -1);
  for (int i = 0; i < out; ++i) say("%s to %d %d", what, targets[i], weighted ? more[i] : -1);
}

static void say_messages(const char* what, MPI_Comm comm, int inter) {
  int own = 0, size = 0, got = -1, sum = 0;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &size);
  if (inter) {
    int others = 0;
    MPI_Comm_remote_size(comm, &others);
    const int mine = own < others ? own : MPI_PROC_NULL;
    MPI_Sendrecv(&rank, 1, MPI_INT, mine, 3, &got, 1, MPI_INT, mine, 3, comm, MPI_STATUS_IGNORE);
  } else {
    MPI_Sendrecv(&rank, 1, MPI_INT, (own + 1) % size, 3, &got, 1, MPI_INT, (own + size - 1) % size,
                 3, comm, MPI_STATUS_IGNORE);
  }
  const int mine = (own + 1) * (rank + 7);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  say("%s: got %d, sum %d", what, got, sum);
}

static void say_group(const char* what, MPI_Group group) {
  MPI_Group world;
  int size = 0, own = 0, result = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(group, &size);
  MPI_Group_rank(group, &own);
  MPI_Group_compare(group, world, &result);
  say("%s: group of %d, own %d, world's %d", what, size, own, result);
  for (int i = 0; i < size; ++i) {
    int there = -1;
    MPI_Group_translate_ranks(group, 1, &i, world, &there);
    say("%s: member %d is %d", what, i, there);
  }
  MPI_Group_free(&world);
}

static void say_communicator(const char* what, MPI_Comm comm) {
  int inter = 0, kind = MPI_UNDEFINED, length = 0, result = -1;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Group group;
  if (comm == MPI_COMM_NULL) {
    say("%s: null", what);
    return;
  }
  MPI_Comm_test_inter(comm, &inter);
  MPI_Comm_get_name(comm, name, &length);
  MPI_Comm_group(comm, &group);
  say_group(what, group);
  MPI_Group_free(&group);
  if (inter) {
    MPI_Comm_remote_group(comm, &group);
    say_group(what, group);
    MPI_Group_free(&group);
  } else {
    MPI_Topo_test(comm, &kind);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
  }
  say("%s: inter %d, topology %d, name '%s', compares %d", what, inter, kind, name, result);
  if (kind == MPI_CART) say_cartesian(what, comm);
  if (kind == MPI_GRAPH) say_graph(what, comm);
  if (kind == MPI_DIST_GRAPH) say_distributed(what, comm);
  say_messages(what, comm, inter);
}

enum { comms_max = 32 };
static struct {
  const char* what;
  MPI_Comm comm;
} comms[comms_max];
static int comms_count;
static MPI_Comm* next(const char* what) {
  comms[comms_count].what = what;
  return &comms[comms_count++].comm;
}

static void make_duplicates(void) {
  MPI_Info info;
  MPI_Request requests[2];
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm* first = next("dup");
  MPI_Comm_dup(MPI_COMM_WORLD, first);
  MPI_Comm_set_name(*first, "a name");
  MPI_Comm_dup(*first, next("dup of dup"));
  MPI_Comm_dup(MPI_COMM_SELF, next("dup of self"));
  MPI_Comm_dup_with_info(*first, info, next("dup with info"));
  MPI_Comm* later = next("idup");
  MPI_Comm_idup(MPI_COMM_WORLD, later, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Comm_idup(*later, next("idup of idup"), &requests[0]);
  MPI_Comm_idup(*first, next("idup of dup"), &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_idup(*first, next("another idup of dup"), &requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Info_free(&info);
}

static void make_parts(void) {
  MPI_Group world, some;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, next("split"));
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, next("split without one"));
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks - rank, MPI_INFO_NULL,
                      next("split by type"));
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int chosen[3] = {ranks - 1, 0, ranks / 2}, count = ranks > 2 ? 3 : 1;
  MPI_Group_incl(world, count, chosen, &some);
  MPI_Comm_create(MPI_COMM_WORLD, some, next("create"));
  int own = MPI_UNDEFINED;
  MPI_Group_rank(some, &own);
  MPI_Comm* part = next("create_group");
  *part = MPI_COMM_NULL;
  if (own != MPI_UNDEFINED) MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, part);
  MPI_Group_free(&some);
  MPI_Group_free(&world);
}

static void make_topologies(void) {
  int dims[2] = {0, 0}, periods[2] = {1, 0}, keep[2] = {0, 1};
  MPI_Dims_create(ranks, 2, dims);
  MPI_Comm* grid = next("cart");
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, grid);
  MPI_Cart_sub(*grid, keep, next("cart_sub"));
  keep[1] = 0;
  MPI_Cart_sub(*grid, keep, next("cart_sub of nothing"));
  MPI_Comm_dup(*grid, next("dup of cart"));
  int one[1] = {1}, open[1] = {0};
  MPI_Cart_create(MPI_COMM_WORLD, 1, one, open, 0, next("cart of one"));
  int index[64], edges[128];
  for (int i = 0; i < ranks; ++i) {
    index[i] = 2 * i + 2;
    edges[2 * i] = (i + 1) % ranks;
    edges[2 * i + 1] = (i + ranks - 1) % ranks;
  }
  MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 0, next("graph"));
  int sources[2] = {(rank + 1) % ranks, rank}, targets[2] = {(rank + ranks - 1) % ranks, rank};
  int weights[2] = {rank + 1, 5}, more[2] = {(rank + ranks - 1) % ranks + 1, 5};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, next("adjacent"));
  (void)more;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, more, 2, targets, weights,
                                 MPI_INFO_NULL, 0, next("adjacent with weights"));
  int degree = 1;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, targets, weights, MPI_INFO_NULL, 0,
                        next("distributed"));
}

static void make_between(void) {
  if (ranks < 2) return;
  MPI_Comm half, *between = next("intercomm");
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, between);
  MPI_Comm_free(&half);
  MPI_Intercomm_merge(*between, rank % 2, next("merge"));
  MPI_Intercomm_merge(*between, 1 - rank % 2, next("other merge"));
  MPI_Comm_dup(*between, next("dup of intercomm"));
  MPI_Comm_split(*between, rank / 2 % 2, rank, next("split of intercomm"));
  MPI_Group local, one;
  int first = 0;
  MPI_Comm_group(*between, &local);
  MPI_Group_incl(local, 1, &first, &one);
  MPI_Comm_create(*between, one, next("create of intercomm"));
  MPI_Group_free(&one);
  MPI_Group_free(&local);
}

static void communicators(void) {
  MPI_Comm passing;
  MPI_Comm_dup(MPI_COMM_WORLD, &passing);
  make_duplicates();
  make_parts();
  MPI_Comm_free(&passing);
  make_topologies();
  make_between();
  renew(0);
  for (int i = 0; i < comms_count; ++i) say_communicator(comms[i].what, comms[i].comm);
  renew(0);
  MPI_Comm_dup(comms[1].comm, &passing);
  say_communicator("dup of a renewed one", passing);
  MPI_Comm_free(&passing);
  for (int i = comms_count - 1; i >= 0; --i) {
    say_communicator(comms[i].what, comms[i].comm);
    if (comms[i].comm != MPI_COMM_NULL) MPI_Comm_free(&comms[i].comm);
  }
}

/* --- groups */

static void groups(void) {
  MPI_Group all[12], world;
  int none[1] = {0}, ranges[1][3] = {{ranks - 1, 0, -1}}, odd[1][3] = {{0, ranks - 1, 2}};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  all[0] = world;
  MPI_Group_incl(world, 1, none, &all[1]);
  MPI_Group_excl(world, 1, none, &all[2]);
  MPI_Group_range_incl(world, 1, ranges, &all[3]);
  MPI_Group_range_excl(world, 1, odd, &all[4]);
  MPI_Group_union(all[4], all[1], &all[5]);
  MPI_Group_intersection(all[3], all[4], &all[6]);
  MPI_Group_difference(all[3], all[1], &all[7]);
  MPI_Group_difference(all[1], all[3], &all[8]);
  MPI_Group_incl(world, 0, none, &all[9]);
  MPI_Comm_group(MPI_COMM_SELF, &all[10]);
  MPI_Comm_group(MPI_COMM_WORLD, &all[11]);
  renew(12);
  for (int i = 0; i < 12; ++i) say_group("group", all[i]);
  for (int i = 11; i >= 0; --i) {
    if (all[i] != MPI_GROUP_EMPTY) MPI_Group_free(&all[i]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) return 2;
  begin(argv[1]);
  communicators();
  groups();
  say("alive: %d", alive());
  MPI_Finalize();
  if (argc > 2) say("%d renewals", renewals);
  return 0;
}
