/* The same count on every rank; rank 0 prints the sum. */
#include <backstay/backstay_mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int64_t lives = 0, sum = 0;
  int rank, code = backstay_init_mpi(MPI_COMM_WORLD, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (code == BACKSTAY_OK) code = backstay_protect("lives", &lives, 1, BACKSTAY_INT64);
  if (code == BACKSTAY_OK) {
    code = backstay_restart(NULL);
    if (code == BACKSTAY_ENONE) code = BACKSTAY_OK;
  }
  lives++;
  if (code == BACKSTAY_OK) code = backstay_checkpoint();
  if (code == BACKSTAY_OK) code = backstay_wait(backstay_version(), BACKSTAY_LOCAL, 60);
  if (code != BACKSTAY_OK) {
    fprintf(stderr, "rank %d: %s: %s\n", rank, backstay_strerror(code), backstay_error_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  backstay_finalize();
  MPI_Reduce(&lives, &sum, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("lives %d\n", (int)sum);
  MPI_Finalize();
  return 0;
}
