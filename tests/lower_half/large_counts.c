// Functions of MPI with counts of 64 bits (MPI 4), of each shape that large.py tells apart. Prints
// a line a step. Usage: large_counts STEPS PAUSE_MS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { most = 16, width = 3 };

static int rank, ranks;
static double from[most * width], to[most * width], sum;
static MPI_Count counts[most], receive_counts[most];
static MPI_Aint places[most], receive_places[most];

static void add(double value) { sum = 0.5 * sum + value; }

static void add_all(void) {
  for (int i = 0; i < ranks * width; ++i) add(to[i] * (i + 1));
  memset(to, 0, sizeof to);
}

static void fill(int step) {
  for (int i = 0; i < most * width; ++i) from[i] = rank + 0.01 * i + step;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1 + (rank + i + step) % width;
    receive_counts[i] = 1 + (i + rank + step) % width;
    places[i] = receive_places[i] = i * width;
  }
}

static void messages(void) {
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Count count = 0, elements = 0;
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Irecv_c(to, most, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend_c(from, 5, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[0], &status);
  MPI_Get_count_c(&status, MPI_DOUBLE, &count);
  MPI_Get_elements_c(&status, MPI_DOUBLE, &elements);
  add((double)(count * 10 + elements));
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  add_all();
  MPI_Sendrecv_c(from, 4, MPI_DOUBLE, right, 2, to, 4, MPI_DOUBLE, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  add_all();
}

static void collectives(void) {
  MPI_Request request;
  MPI_Count *mine = rank == 0 ? receive_counts : NULL, *theirs = rank == 0 ? counts : NULL;
  MPI_Aint* places_0 = rank == 0 ? places : NULL;
  MPI_Allgatherv_c(from, receive_counts[0], MPI_DOUBLE, to, receive_counts, places, MPI_DOUBLE,
                   MPI_COMM_SELF);
  add_all();
  MPI_Alltoallv_c(from, counts, places, MPI_DOUBLE, to, receive_counts, receive_places, MPI_DOUBLE,
                  MPI_COMM_WORLD);
  add_all();
  MPI_Ialltoallv_c(from, counts, places, MPI_DOUBLE, to, receive_counts, receive_places, MPI_DOUBLE,
                   MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  add_all();
  MPI_Count own = 0;
  MPI_Scatter_c(theirs, 1, MPI_COUNT, &own, 1, MPI_COUNT, 0, MPI_COMM_WORLD);
  MPI_Scatterv_c(from, theirs, places_0, MPI_DOUBLE, to, own, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  add_all();
  MPI_Scatter_c(mine, 1, MPI_COUNT, &own, 1, MPI_COUNT, 0, MPI_COMM_WORLD);
  MPI_Gatherv_c(from, own, MPI_DOUBLE, to, mine, places_0, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  add_all();
  for (int i = 0; i < ranks; ++i) counts[i] = width;
  MPI_Reduce_scatter_c(from, to, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  add_all();
  MPI_Alltoallv_c(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, from, counts, places, MPI_DOUBLE,
                  MPI_COMM_WORLD);
  memcpy(to, from, sizeof to);
  add_all();
}

static void larger(void* in, void* inout, MPI_Count* count, MPI_Datatype* type) {
  (void)type;
  for (MPI_Count i = 0; i < *count; ++i) {
    const double a = ((double*)in)[i], b = ((double*)inout)[i];
    ((double*)inout)[i] = a > b ? a : b;
  }
}

static void operations(void) {
  MPI_Op op;
  MPI_Op_create_c(larger, 1, &op);
  MPI_Allreduce_c(from, to, width, MPI_DOUBLE, op, MPI_COMM_WORLD);
  add_all();
  MPI_Op_free(&op);
}

static void datatypes(void) {
  MPI_Datatype made[4];
  MPI_Count lengths[] = {1, 2}, displacements[] = {0, 4}, sizes[] = {4, 4}, parts[] = {2, 2},
            starts[] = {1, 1}, size = 0, bytes[] = {0, 40};
  MPI_Type_indexed_c(2, lengths, displacements, MPI_DOUBLE, &made[0]);
  MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &made[1]);
  MPI_Type_create_hindexed_c(2, lengths, bytes, MPI_DOUBLE, &made[2]);
  MPI_Type_vector_c(2, 1, 3, MPI_DOUBLE, &made[3]);
  for (int i = 0; i < 4; ++i) {
    MPI_Count integers, addresses, large, types, lower, extent;
    int combiner;
    MPI_Type_commit(&made[i]);
    MPI_Type_size_c(made[i], &size);
    MPI_Type_get_extent_c(made[i], &lower, &extent);
    MPI_Type_get_envelope_c(made[i], &integers, &addresses, &large, &types, &combiner);
    // With large counts MPI may tell as many numbers, of either kind.
    add((double)(size + 3 * extent + 7 * (integers + large + addresses) + types));
    MPI_Sendrecv_c(from, 1, made[i], rank, 3, to, most, MPI_DOUBLE, rank, 3, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    add_all();
    MPI_Type_free(&made[i]);
  }
  char room[200];
  MPI_Count at = 0, needed = 0;
  MPI_Pack_size_c(3, MPI_DOUBLE, MPI_COMM_WORLD, &needed);
  MPI_Pack_c(from, 3, MPI_DOUBLE, room, sizeof room, &at, MPI_COMM_WORLD);
  add((double)(at + needed));
  at = 0;
  MPI_Unpack_c(room, sizeof room, &at, to, 3, MPI_DOUBLE, MPI_COMM_WORLD);
  add_all();
}

// One element of no bytes, more often than an int counts.
static void very_many(void) {
  MPI_Datatype nothing;
  MPI_Status status;
  MPI_Count count = -1;
  const MPI_Count many = (3LL << 30) + 5;
  MPI_Type_contiguous_c(0, MPI_DOUBLE, &nothing);
  MPI_Type_commit(&nothing);
  MPI_Sendrecv_c(from, many, nothing, rank, 4, to, many, nothing, rank, 4, MPI_COMM_WORLD, &status);
  MPI_Get_count_c(&status, nothing, &count);
  add((double)count);
  MPI_Type_free(&nothing);
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 10, pause_ms = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Init(&argc, &argv);
  int major = 0, minor = 0;
#if MPI_VERSION >= 5
  MPI_Abi_get_version(&major, &minor);
#endif
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int step = 0; step < steps; ++step) {
    fill(step);
    messages();
    collectives();
    operations();
    datatypes();
    very_many();
    double all = 0;
    MPI_Allreduce_c(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("ABI %d step %d sum %.17g\n", major, step, all);
    fflush(stdout);
    usleep((useconds_t)pause_ms * 1000);
  }
  MPI_Finalize();
  return 0;
}
