/* Makes and frees handles of all kinds at random, renews them at random points, and says what can
 * be seen: the lines must be those of a run without renewals. All ranks throw the same dice, so
 * that they make the same calls; a rank that is no member of a communicator passes its calls over.
 */
#include <stdint.h>

#include "renewing.h"

static uint64_t state;
static int dice(int below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)below);
}

enum { places = 12 };
static MPI_Comm comms[places];
static int is_taken[places]; /* at all ranks: also where this one is no member */
static int is_inter[places];
static MPI_Group groups[places];
static MPI_Datatype types[places];
static MPI_Info infos[places];
static MPI_Op ops[places];
static MPI_Errhandler handlers[places];
static int deleted, keys[4], values[8] = {0, 1, 2, 3, 4, 5, 6, 7};

static void twice(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += 2 * ((int*)in)[i];
}
static void greatest(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) {
    if (((int*)in)[i] > ((int*)inout)[i]) ((int*)inout)[i] = ((int*)in)[i];
  }
}
static void first_handler(MPI_Comm* comm, int* code, ...) {
  int size = 0;
  (void)code;
  MPI_Comm_size(*comm, &size);
  say("first handler, of %d", size);
}
static void second_handler(MPI_Comm* comm, int* code, ...) {
  int size = 0;
  (void)code;
  MPI_Comm_size(*comm, &size);
  say("second handler, of %d", size);
}
static int copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  *(void**)out = in;
  *flag = *(int*)in % 3 != 0;
  return MPI_SUCCESS;
}
static int delete (MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  deleted += 1 << 4 * *(int*)value;
  return MPI_SUCCESS;
}

/* --- one step on each kind; `to` is free and `from` may be */

static MPI_Comm of(int from) { return from == 0 ? MPI_COMM_WORLD : comms[from]; }

static MPI_Comm make_topology(MPI_Comm from, int kind) {
  int dims[2] = {0, 0}, periods[2] = {kind % 2, 1}, size = 0, own = 0;
  MPI_Comm made;
  MPI_Comm_size(from, &size);
  MPI_Comm_rank(from, &own);
  if (kind < 2) {
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(from, 2, dims, periods, 0, &made);
  } else {
    int source = (own + kind) % size, target = (own + size - kind % size) % size;
    MPI_Dist_graph_create_adjacent(from, 1, &source, MPI_UNWEIGHTED, 1, &target, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &made);
  }
  return made;
}

static MPI_Comm make_between(MPI_Comm from) {
  int size = 0, own = 0;
  MPI_Comm half, made;
  MPI_Comm_size(from, &size);
  MPI_Comm_rank(from, &own);
  if (size < 2) return MPI_COMM_NULL;
  MPI_Comm_split(from, own % 2, own, &half);
  MPI_Intercomm_create(half, 0, from, 1 - own % 2, 5, &made);
  MPI_Comm_free(&half);
  return made;
}

/* The same at all members of one side, and another one on the other side. */
static int is_upper(MPI_Comm between) {
  MPI_Group sides[2], world;
  int first = 0, places_in_world[2];
  MPI_Comm_group(between, &sides[0]);
  MPI_Comm_remote_group(between, &sides[1]);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < 2; ++i) {
    MPI_Group_translate_ranks(sides[i], 1, &first, world, &places_in_world[i]);
    MPI_Group_free(&sides[i]);
  }
  MPI_Group_free(&world);
  return places_in_world[0] > places_in_world[1];
}

static void make_comm(int from, int to) {
  const int how = dice(9), colours = 1 + dice(3), kind = dice(4);
  if (to == 0 || is_taken[to] || (from != 0 && !is_taken[from])) return;
  is_taken[to] = 1;
  is_inter[to] = 0;
  if (of(from) == MPI_COMM_NULL) return;
  MPI_Comm old = of(from);
  MPI_Request request;
  int own = 0;
  MPI_Comm_rank(old, &own);
  if (how < 2) MPI_Comm_dup(old, &comms[to]);
  if (how == 2) {
    MPI_Comm_idup(old, &comms[to], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (how == 3 || how == 4) MPI_Comm_split(old, own % colours, how == 3 ? own : -own, &comms[to]);
  if (how == 5 && !is_inter[from]) comms[to] = make_topology(old, kind);
  if (how == 6 && !is_inter[from]) comms[to] = make_between(old);
  if (how == 7 && is_inter[from]) MPI_Intercomm_merge(old, is_upper(old), &comms[to]);
  if (how == 8) MPI_Comm_split(old, own == 0 ? MPI_UNDEFINED : 1, own, &comms[to]);
  if (comms[to] != MPI_COMM_NULL) MPI_Comm_test_inter(comms[to], &is_inter[to]);
}

static void make_group(int from, int to) {
  const int how = dice(4), other = dice(places);
  if (groups[to] != MPI_GROUP_NULL) return;
  int first = 0;
  if (how == 0 && of(from) != MPI_COMM_NULL) MPI_Comm_group(of(from), &groups[to]);
  if (groups[from] == MPI_GROUP_NULL || groups[other] == MPI_GROUP_NULL) return;
  int size = 0;
  MPI_Group_size(groups[from], &size);
  if (how == 1 && size > 0) MPI_Group_incl(groups[from], 1, &first, &groups[to]);
  if (how == 2) MPI_Group_union(groups[from], groups[other], &groups[to]);
  if (how == 3) MPI_Group_difference(groups[from], groups[other], &groups[to]);
}

static void make_type(int from, int to) {
  const int how = dice(5), other = dice(places), count = 1 + dice(3);
  if (types[to] != MPI_DATATYPE_NULL) return;
  const MPI_Datatype old = types[from] != MPI_DATATYPE_NULL ? types[from] : MPI_INT;
  const MPI_Datatype more = types[other] != MPI_DATATYPE_NULL ? types[other] : MPI_CHAR;
  int lengths[2] = {1, count};
  MPI_Aint at[2] = {0, 0}, low = 0, extent = 0;
  MPI_Datatype parts[2] = {old, more};
  MPI_Type_get_extent(old, &low, &extent);
  at[1] = low + extent + 8;
  if (extent > 4096) return;
  if (how == 0) MPI_Type_contiguous(count, old, &types[to]);
  if (how == 1) MPI_Type_vector(count, 1, 2, old, &types[to]);
  if (how == 2) MPI_Type_create_struct(2, lengths, at, parts, &types[to]);
  if (how == 3) MPI_Type_dup(old, &types[to]);
  if (how == 4) MPI_Type_create_resized(old, low, extent + 4, &types[to]);
  if (dice(2)) MPI_Type_commit(&types[to]);
}

static void make_other(int from, int to) {
  char key[16];
  if (infos[to] == MPI_INFO_NULL) {
    if (infos[from] == MPI_INFO_NULL) {
      MPI_Info_create(&infos[to]);
    } else {
      MPI_Info_dup(infos[from], &infos[to]);
    }
  }
  snprintf(key, sizeof key, "key %d", dice(5));
  MPI_Info_set(infos[to], key, dice(2) ? "one" : "another");
  if (ops[to] == MPI_OP_NULL) MPI_Op_create(dice(2) ? twice : greatest, dice(2), &ops[to]);
  if (handlers[to] == MPI_ERRHANDLER_NULL) {
    MPI_Comm_create_errhandler(dice(2) ? first_handler : second_handler, &handlers[to]);
  }
}

static void change(int from, int to) {
  char name[16];
  const int how = dice(5), at = dice(4), value = dice(8), number = dice(100);
  if (of(from) == MPI_COMM_NULL || from == 0) return;
  snprintf(name, sizeof name, "name %d", number);
  if (how == 0) MPI_Comm_set_name(of(from), name);
  if (how == 1) MPI_Comm_set_attr(of(from), keys[at], &values[value]);
  if (how == 2 && handlers[to] != MPI_ERRHANDLER_NULL) {
    MPI_Comm_set_errhandler(of(from), handlers[to]);
  }
  if (how == 3) MPI_Comm_set_errhandler(of(from), MPI_ERRORS_RETURN);
  if (how == 4 && types[to] != MPI_DATATYPE_NULL) MPI_Type_set_name(types[to], name);
}

/* At random, or all. */
static void end(int at, int always) {
  const int what = dice(8);
  if (always || what < 3) {
    deleted = 0; /* the standard has no order for the attributes of one communicator */
    is_taken[at] = 0;
    if (at != 0 && comms[at] != MPI_COMM_NULL) MPI_Comm_free(&comms[at]);
    if (deleted != 0) say("deleted %d", deleted);
  }
  if ((always || what == 3) && groups[at] != MPI_GROUP_NULL) {
    if (groups[at] == MPI_GROUP_EMPTY) groups[at] = MPI_GROUP_NULL;
    if (groups[at] != MPI_GROUP_NULL) MPI_Group_free(&groups[at]);
  }
  if ((always || what == 4) && types[at] != MPI_DATATYPE_NULL) MPI_Type_free(&types[at]);
  if ((always || what == 5) && infos[at] != MPI_INFO_NULL) MPI_Info_free(&infos[at]);
  if ((always || what == 6) && ops[at] != MPI_OP_NULL) MPI_Op_free(&ops[at]);
  if ((always || what == 7) && handlers[at] != MPI_ERRHANDLER_NULL) {
    MPI_Errhandler_free(&handlers[at]);
  }
}

/* --- what can be seen */

static void look_at_comm(int at, MPI_Op op) {
  int size = 0, own = 0, kind = 0, length = 0, sum = 0, flag = 0, *value = NULL;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm comm = of(at);
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &own);
  if (!is_inter[at]) MPI_Topo_test(comm, &kind);
  MPI_Comm_get_name(comm, name, &length);
  const int mine = rank * 3 + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, comm);
  say("comm %d: %d of %d, topology %d, '%s', %d", at, own, size, kind, name, sum);
  for (int i = 0; i < 4; ++i) {
    MPI_Comm_get_attr(comm, keys[i], &value, &flag);
    if (flag) say("comm %d: attribute %d is %d", at, i, *value);
  }
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(comm, &handler);
  if (handler != MPI_ERRORS_ARE_FATAL) MPI_Send(&own, 1, MPI_INT, 1000, 0, comm);
  if (handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN)
    MPI_Errhandler_free(&handler);
}

static void look_at_others(int at) {
  int size = 0, own = 0, count = 0, flag = 0, length = 0, numbers[4];
  MPI_Aint low = 0, extent = 0;
  char key[MPI_MAX_INFO_KEY], value[64] = "", name[MPI_MAX_OBJECT_NAME] = "";
  if (groups[at] != MPI_GROUP_NULL) {
    MPI_Group_size(groups[at], &size);
    MPI_Group_rank(groups[at], &own);
    say("group %d: %d of %d", at, own, size);
  }
  if (types[at] != MPI_DATATYPE_NULL) {
    MPI_Type_size(types[at], &size);
    MPI_Type_get_extent(types[at], &low, &extent);
    MPI_Type_get_name(types[at], name, &length);
    MPI_Type_get_envelope(types[at], &numbers[0], &numbers[1], &numbers[2], &numbers[3]);
    say("type %d: %d bytes, %ld %ld, '%s', %d %d", at, size, (long)low, (long)extent, name,
        numbers[0], numbers[3]);
  }
  if (infos[at] == MPI_INFO_NULL) return;
  MPI_Info_get_nkeys(infos[at], &count);
  for (int i = 0; i < count; ++i) {
    MPI_Info_get_nthkey(infos[at], i, key);
    MPI_Info_get(infos[at], key, 63, value, &flag);
    say("info %d: %s is %s", at, key, value);
  }
}

static void step(void) {
  const int what = dice(12), from = dice(places), to = dice(places), op = dice(places);
  if (what < 3) make_comm(from, to);
  if (what == 3) make_group(from, to);
  if (what == 4) make_type(from, to);
  if (what == 5) make_other(from, to);
  if (what == 6) change(from, to);
  if (what == 7) end(to, 0);
  if (what == 8) look_at_comm(from, ops[op] != MPI_OP_NULL ? ops[op] : MPI_SUM);
  if (what > 8) look_at_others(from);
  if (dice(15) == 0) renew(1000); /* empty groups stay */
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) return 2;
  begin(argv[1]);
  state = (uint64_t)atoi(argv[2]);
  for (int i = 0; i < places; ++i) {
    comms[i] = MPI_COMM_NULL;
    groups[i] = MPI_GROUP_NULL;
    types[i] = MPI_DATATYPE_NULL;
    infos[i] = MPI_INFO_NULL;
    ops[i] = MPI_OP_NULL;
    handlers[i] = MPI_ERRHANDLER_NULL;
  }
  for (int i = 0; i < 4; ++i) MPI_Comm_create_keyval(copy, delete, &keys[i], NULL);
  for (int i = 0; i < atoi(argv[3]); ++i) {
    const uint64_t now = state; /* what one step throws must not depend on the rank */
    step();
    state = now + 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
  }
  for (int i = 0; i < places; ++i) end(i, 1);
  say("alive: %d", alive());
  MPI_Finalize();
  if (argc > 4) say("%d renewals", renewals);
  return 0;
}
