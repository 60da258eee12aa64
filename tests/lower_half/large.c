// Has 16 MiB a rank, of which each of three steps changes some words; each step waits for a file.
// Between the steps all ranks call MPI. Usage: large.MPI
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 2 << 20, STEPS = 3 };

static uint64_t drawn;

static uint64_t draw(void) {
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  return drawn;
}

static void append(const char* name, int rank, uint64_t number) {
  char path[64];
  snprintf(path, sizeof path, "%s.%d", name, rank);
  FILE* file = fopen(path, "a");
  fprintf(file, "%llx\n", (unsigned long long)number);
  fclose(file);
}

static void wait_for(int step) {
  char path[64];
  snprintf(path, sizeof path, "step%d", step);
  for (int there = 0; !there; usleep(2000)) {
    there = access(path, F_OK) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

int main(int count, char** words) {
  int rank = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  drawn = 88172645463325252U + (uint64_t)rank;
  uint64_t* data = malloc(WORDS * sizeof *data);
  for (int i = 0; i < WORDS; ++i) data[i] = draw();
  uint64_t all = 0;
  for (int step = 1; step <= STEPS; ++step) {
    append("has", rank, (uint64_t)step);
    wait_for(step);
    uint64_t mine = all;
    for (int i = 0; i < 40; ++i) mine += data[draw() % WORDS] += draw();
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  }
  uint64_t sum = 0;
  for (int i = 0; i < WORDS; ++i) sum = sum * 31 + data[i];
  append("sums", rank, sum);
  append("sums", rank, all);
  MPI_Finalize();
  return 0;
}
