// Four ranks, of which two wait for rank 0 while they are held in a cut: rank 2 before a collective
// call, rank 3 for a message. They print how much of that time they had the processor, and end with
// code 1 where that is more than a twentieth in most steps. Usage: held STEPS MILLISECONDS, which
// rank 0 computes in each step.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t of) {
  struct timespec now;
  clock_gettime(of, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

int main(int count, char** words) {
  int rank, spun = 0, word = 0, sum = 0;
  MPI_Comm pair;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &pair);
  const int steps = atoi(words[1]), ms = atoi(words[2]);
  for (int step = 0; step < steps; ++step) {
    // A cut begins while rank 1 is in its call, and before the others come to theirs.
    sleep_ms(rank == 0 ? ms : rank == 1 ? 0 : 200);
    const double used = seconds(CLOCK_THREAD_CPUTIME_ID), began = seconds(CLOCK_MONOTONIC);
    if (rank < 2) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, pair);
    if (rank == 0) MPI_Send(&word, 1, MPI_INT, 3, 0, MPI_COMM_WORLD);
    if (rank == 3) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2) MPI_Barrier(MPI_COMM_WORLD);
    const double share =
        (seconds(CLOCK_THREAD_CPUTIME_ID) - used) / (seconds(CLOCK_MONOTONIC) - began);
    if (rank >= 2) fprintf(stderr, "rank %d: %.1f %%\n", rank, 100 * share);
    if (rank >= 2 && share > 0.05) ++spun;
    if (rank != 2) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return spun > steps / 2;
}
