// A program as users have it: a heat equation on a ring of strips, halos by different ways of MPI,
// and a checksum that is the same in each run, bit for bit. Usage: halo [STEPS [PAUSE_MS]]
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { rows = 64, columns = 96 };
static double field[2][rows + 2][columns];
static int rank, ranks, left, right;

static MPI_Comm ring, half;
static MPI_Datatype row, unlike;
static MPI_Op mix;
static MPI_Request kept[2][4];  // of both fields: odd steps write the second

static uint64_t checksum(double (*of)[columns]) {
  uint64_t sum = 1469598103934665603ULL;
  for (int i = 1; i <= rows; ++i) {
    for (int k = 0; k < columns; ++k) {
      uint64_t bits;
      memcpy(&bits, &of[i][k], sizeof bits);
      sum = (sum ^ bits) * 1099511628211ULL;
    }
  }
  return sum;
}

// An operation of the program.
static void exclusive_or(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  if (bytes != 8) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int i = 0; i < *count; ++i) ((uint64_t*)inout)[i] ^= ((uint64_t*)in)[i];
}

static void exchange(double (*of)[columns], MPI_Comm comm, MPI_Request* requests, int step) {
  if (step % 3 == 0) {
    MPI_Sendrecv(of[1], 1, row, left, 1, of[rows + 1], 1, row, right, 1, comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(of[rows], columns, MPI_DOUBLE, right, 2, of[0], columns, MPI_DOUBLE, left, 2, comm,
                 MPI_STATUS_IGNORE);
  } else if (step % 3 == 1) {
    MPI_Request request[4];
    MPI_Status status[4];
    MPI_Datatype once;
    MPI_Type_dup(row, &once);
    MPI_Irecv(of[0], 1, once, left, ranks > 2 ? MPI_ANY_TAG : 2, comm, &request[0]);
    MPI_Type_free(&once);  // MPI keeps it for the receive
    MPI_Irecv(of[rows + 1], 1, row, right, 1, comm, &request[1]);
    MPI_Isend(of[1], 1, row, left, 1, comm, &request[2]);
    MPI_Isend(of[rows], 1, row, right, 2, comm, &request[3]);
    MPI_Waitall(4, request, status);
    int got = 0;
    MPI_Get_count(&status[0], MPI_DOUBLE, &got);
    if (got != columns || status[0].MPI_SOURCE != left || request[0] != MPI_REQUEST_NULL) {
      MPI_Abort(comm, 4);
    }
  } else {
    int done = 0;
    MPI_Startall(4, requests);
    for (int index = 0; done < 4; ++done) MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
  }
}

static void begin(void) {
  int period = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &period, 0, &ring);
  MPI_Comm_rank(ring, &rank);
  MPI_Cart_shift(ring, 0, 1, &left, &right);
  MPI_Comm_split(ring, rank % 2, -rank, &half);
  MPI_Type_vector(columns / 8, 8, 8, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  MPI_Op_create(exclusive_or, 1, &mix);
  for (int i = 1; i <= rows; ++i) {
    for (int k = 0; k < columns; ++k) field[0][i][k] = (rank * 131 + i * 17 + k * 7) % 1000 * 0.37;
  }
  MPI_Datatype once;
  MPI_Type_dup(row, &once);
  for (int f = 0; f < 2; ++f) {
    MPI_Recv_init(field[f][0], 1, once, left, 2, ring, &kept[f][0]);
    MPI_Recv_init(field[f][rows + 1], 1, once, right, 1, ring, &kept[f][1]);
    MPI_Send_init(field[f][1], 1, once, left, 1, ring, &kept[f][2]);
    MPI_Send_init(field[f][rows], 1, once, right, 2, ring, &kept[f][3]);
  }
  // As programs do; its number may be used again, for another type.
  MPI_Type_free(&once);
  MPI_Type_contiguous(3, MPI_CHAR, &unlike);
  MPI_Type_commit(&unlike);
}

static double relax(double (*now)[columns], double (*next)[columns]) {
  double sum = 0;
  for (int i = 1; i <= rows; ++i) {
    for (int k = 0; k < columns; ++k) {
      const double west = now[i][(k + columns - 1) % columns], east = now[i][(k + 1) % columns];
      next[i][k] = 0.2 * (now[i][k] + now[i - 1][k] + now[i + 1][k] + west + east);
      sum += next[i][k];
    }
  }
  return sum;
}

// Sums over all and over each half, a checksum by the program's operation, and messages to rank 0.
static void report(int step, double local, uint64_t mine) {
  double sum = 0, of_half = 0, of_halves[2] = {0, 0};
  uint64_t all = 0;
  MPI_Allreduce(&local, &sum, 1, MPI_DOUBLE, MPI_SUM, ring);
  MPI_Allreduce(&local, &of_half, 1, MPI_DOUBLE, MPI_MAX, half);
  MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, mix, 0, ring);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank < 2) MPI_Isend(&of_half, 1, MPI_DOUBLE, 0, 9, ring, &request);
  for (int i = 0; rank == 0 && i < 2 && i < ranks; ++i) {
    MPI_Status status;
    double value = 0;
    MPI_Recv(&value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 9, ring, &status);
    of_halves[status.MPI_SOURCE] = value;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank != 0) return;
  printf("step %d sum %.17g halves %.17g %.17g checksum %016llx\n", step, sum, of_halves[0],
         of_halves[1], (unsigned long long)all);
}

static int end(void) {
  for (int i = 0; i < 8; ++i) MPI_Request_free(&kept[i / 4][i % 4]);
  MPI_Op_free(&mix);
  MPI_Type_free(&row);
  MPI_Type_free(&unlike);
  MPI_Comm_free(&half);
  MPI_Comm_free(&ring);
  if (ring != MPI_COMM_NULL || row != MPI_DATATYPE_NULL || mix != MPI_OP_NULL) return 5;
  MPI_Finalize();
  return 0;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 30;
  const int pause_ms = argc > 2 ? atoi(argv[2]) : 0;  // after each step
  MPI_Init(&argc, &argv);
  begin();
  for (int step = 0; step < steps; ++step) {
    double(*next)[columns] = field[(step + 1) % 2];
    exchange(field[step % 2], ring, kept[step % 2], step);
    const double local = relax(field[step % 2], next);
    report(step, local, checksum(next));
    if (pause_ms > 0) usleep((useconds_t)pause_ms * 1000);
  }
  return end();
}
