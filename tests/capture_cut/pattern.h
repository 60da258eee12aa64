// What the programs here share: a step for each way to use MPI, and a checksum of each step and
// rank, which is the same in each run. Usage of each program: PROGRAM NAME STEPS [FILE]
// Each rank then writes into FILE.RANK: what goes through a launcher may be lost when that dies.
#pragma once
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { words = 600, large = 40000 };
static int rank, ranks, left, right;
static int threads_wanted = MPI_THREAD_SINGLE;
static uint64_t own[large], got[large], other[large];

static uint64_t mix(uint64_t sum, uint64_t word) {
  sum ^= word + 0x9e3779b97f4a7c15u + (sum << 6) + (sum >> 2);
  return sum * 0x2545f4914f6cdd1du;
}

static uint64_t sum_of(const uint64_t* of, int count) {
  uint64_t sum = 1;
  for (int i = 0; i < count; ++i) sum = mix(sum, of[i]);
  return sum;
}

// Some work, not the same at each rank and step.
static void work(int step) {
  const int turns = 1 + (step * 7 + rank * 5) % 11;
  for (int i = 0; i < turns; ++i) own[i] = mix(sum_of(own, words), (uint64_t)(step + i));
}

static int size_of(int step) { return step % 5 == 0 ? large : words; }

struct Pattern {
  const char* name;
  uint64_t (*step)(int);
};
static int play(int argc, char** argv, const struct Pattern* all, size_t count) {
  const int steps = argc > 2 ? atoi(argv[2]) : 10;
  uint64_t (*run)(int) = NULL;
  for (size_t i = 0; argc > 1 && i < count; ++i) {
    if (strcmp(all[i].name, argv[1]) == 0) run = all[i].step;
  }
  if (run == NULL) return 2;
  int level = 0;
  MPI_Init_thread(&argc, &argv, threads_wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  FILE* out = stdout;
  if (argc > 3) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[3], rank);
    out = fopen(path, "w");
    if (out == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  left = (rank + ranks - 1) % ranks;
  right = (rank + 1) % ranks;
  for (int i = 0; i < large; ++i) own[i] = mix((uint64_t)rank, (uint64_t)i);
  uint64_t sum = 0;
  for (int step = 0; step < steps; ++step) {
    work(step);
    sum = mix(sum, run(step));
    if (step % 50 == 0 || step + 1 == steps) {
      fprintf(out, "%s %d of rank %d: %016llx\n", argv[1], step, rank, (unsigned long long)sum);
      fflush(out);
    }
  }
  MPI_Finalize();
  return 0;
}
