/* A real MPI program over all hosts: a token goes round the ring, each rank says where it runs.
 * ring           one round
 * ring forever   rounds without end; rank 0 says "running" after the first
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int go_round(int rank, int ranks) {
  int token = rank == 0 ? 1 : 0;
  if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  token += rank;
  MPI_Send(&token, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&token, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return token;
}

int main(int argc, char** argv) {
  char host[256];
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s\n", rank, ranks, host);
  const int token = go_round(rank, ranks);
  if (rank == 0) printf("token %d\n", token);
  if (rank == 0 && argc > 1) printf("running\n");
  fflush(stdout);
  while (argc > 1) {
    go_round(rank, ranks);
    usleep(1000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
#ifdef MPICH_VERSION
  // MPI_Finalize of MPICH 4.0.2 over UCX and TCP can wait without end: a rank closes its
  // connections while the others, which are done, wait for it without serving theirs.
  fflush(stdout);
  _exit(0);
#endif
  MPI_Finalize();
  return 0;
}
