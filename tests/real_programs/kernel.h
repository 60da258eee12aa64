// What the kernels share: their arguments, and a checksum after each step, in hexadecimal, so that
// one bit that differs is seen. It goes into a file: what is in a launcher's pipe when the launcher
// dies may be lost, or come twice.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int argument(int argc, char** argv, int at, int otherwise) {
  return argc > at ? atoi(argv[at]) : otherwise;
}

static double* numbers(size_t count) {
  double* made = calloc(count, sizeof *made);
  if (made == NULL) {
    fprintf(stderr, "no memory for %zu numbers\n", count);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return made;
}

static int rank, ranks;
static FILE* out;  // of rank 0

static void begin(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != 0) return;
  out = argc > 1 ? fopen(argv[1], "w") : stdout;
  if (out == NULL) {
    perror(argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// Bits of all ranks, whatever the order: a sum of doubles would depend on it.
static void print_step(int step, const double* values, size_t count) {
  unsigned long long mine = 1469598103934665603ULL, all = 0;
  for (size_t i = 0; i < count; ++i) {
    unsigned long long bits;
    memcpy(&bits, &values[i], sizeof bits);
    mine = (mine ^ bits) * 1099511628211ULL;
  }
  MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    fprintf(out, "%d %016llx\n", step, all);
    fflush(out);
  }
}
