/* Heat spreading over a plate, with MPI and Backstay. Start here: the lines that mention backstay
 * are all that a program needs. mpirun -n 4 ./heat [steps] [rows] [columns] */
#include <backstay/backstay_mpi.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, rows, cols; /* rows: of this rank, u has one more above and below */
static double *u, *next;

static void step(void) {
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  double *top = u + cols, *bottom = u + (size_t)rows * cols;
  MPI_Sendrecv(top, cols, MPI_DOUBLE, up, 0, bottom + cols, cols, MPI_DOUBLE, down, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(bottom, cols, MPI_DOUBLE, down, 1, u, cols, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j < cols - 1; j++) {
      const double* c = u + (size_t)i * cols + j;
      next[c - u] = c[0] + 0.1 * (((c[-cols] + c[cols]) + (c[-1] + c[1])) - 4.0 * c[0]);
    }
  memcpy(top, next + cols, (size_t)rows * cols * sizeof *u);
}

/* The bits of all elements added up: the same for any number of ranks, another for any error. */
static uint64_t checksum(void) {
  uint64_t sum = 0, bits;
  for (size_t i = cols; i < (size_t)(rows + 1) * cols; i++) sum += (memcpy(&bits, u + i, 8), bits);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static void check(int code) {
  if (code == BACKSTAY_OK) return;
  fprintf(stderr, "heat: %s\n", backstay_error_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int64_t n = 0, steps = argc > 1 ? atol(argv[1]) : 1000;
  int all_rows = argc > 2 ? atoi(argv[2]) : 512, first = (int)((int64_t)all_rows * rank / ranks);
  rows = (int)((int64_t)all_rows * (rank + 1) / ranks) - first;
  cols = argc > 3 ? atoi(argv[3]) : 512;
  u = calloc((size_t)(rows + 2) * cols, sizeof *u);
  next = calloc((size_t)(rows + 2) * cols, sizeof *u);
  if (rank == 0)
    for (int j = 0; j < cols; j++) u[j] = 100.0; /* the hot edge above row 0 */

  check(backstay_init_mpi(MPI_COMM_WORLD, NULL));
  check(backstay_protect("n", &n, 1, BACKSTAY_INT64));
  backstay_array place = {2, {rows, cols}, {all_rows, cols}, {first, 0}};
  check(backstay_protect_array("u", u + cols, &place, BACKSTAY_DOUBLE));
  int code = backstay_restart(NULL);
  if (code != BACKSTAY_ENONE) check(code);
  if (code == BACKSTAY_OK && rank == 0)
    printf("restart version %" PRIu64 " step %" PRId64 "\n", backstay_version(), n);

  while (n < steps && !backstay_stop_requested()) {
    step();
    n++;
    if (backstay_due() && backstay_checkpoint() == BACKSTAY_OK && rank == 0)
      printf("version %" PRIu64 " step %" PRId64 "\n", backstay_version(), n), fflush(stdout);
  }
  uint64_t sum = checksum();
  if (rank == 0) printf("done step %" PRId64 " checksum %016" PRIX64 "\n", n, sum);
  backstay_finalize();
  MPI_Finalize();
}
