/* One step: sweeps over a piece of the memory, a pause (--idle_us), edges to both neighbours on the
 * ring and back, one sum over all. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { window_doubles = 32768 }; /* 256 KiB: stays in the cache of a core */

char* memory;
int64_t step;
static long passes = 1;
static char *edge_out, *edge_in;

void make_state(void) {
  const size_t edge = (size_t)options.halo_kib << 10;
  memory = aligned_alloc(4096, (size_t)options.mib << 20);
  edge_out = calloc(1, edge + 1);
  edge_in = calloc(1, edge + 1);
  if (memory == NULL || edge_out == NULL || edge_in == NULL) die("memory");
  fill(0);
}

static void sweep(void) {
  const size_t windows = ((size_t)options.mib << 20) / (window_doubles * sizeof(double));
  double* u = (double*)memory + window_doubles * ((size_t)step % windows);
  double left = u[window_doubles - 1];
  for (int i = 0; i < window_doubles; ++i) {
    const double value = 0.7 * u[i] + 0.3 * left;
    left = u[i];
    u[i] = value;
  }
}

/* As many sweeps as take --work_us of a core that does nothing else: measured by rank 0 while the
 * others sleep. */
void calibrate(void) {
  enum { tries = 400 };
  MPI_Request ready;
  int done = 0;
  if (rank == 0) {
    const double start = now_s();
    for (int i = 0; i < tries; ++i) sweep();
    passes = (long)(1e-6 * (double)options.work_us / ((now_s() - start) / tries)) + 1;
  }
  MPI_Ibcast(&passes, 1, MPI_LONG, 0, MPI_COMM_WORLD, &ready);
  for (MPI_Test(&ready, &done, MPI_STATUS_IGNORE); !done;) {
    usleep(1000);
    MPI_Test(&ready, &done, MPI_STATUS_IGNORE);
  }
}

void step_once(void) {
  const int edge = (int)(options.halo_kib << 10), left = (rank + ranks - 1) % ranks,
            right = (rank + 1) % ranks;
  double residual = memory[(size_t)step % 4096];
  for (long i = 0; i < passes; ++i) sweep();
  if (options.idle_us > 0) usleep((unsigned)options.idle_us);
  MPI_Sendrecv(edge_out, edge, MPI_CHAR, right, 0, edge_in, edge, MPI_CHAR, left, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(edge_out, edge, MPI_CHAR, left, 1, edge_in, edge, MPI_CHAR, right, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ++step;
}

static uint64_t mixed(uint64_t value) {
  value *= 0x9e3779b97f4a7c15U;
  return value ^ (value >> 29);
}

static uint64_t word(uint64_t round, uint64_t at) {
  return mixed(at + ((round * 4096 + (uint64_t)rank) << 40)) >>
         12; /* as a double: small and finite */
}

void fill(uint64_t round) {
  uint64_t* words = (uint64_t*)memory;
  for (uint64_t i = 0; i < (uint64_t)options.mib << 17; ++i) words[i] = word(round, i);
}

int is_filled(uint64_t round) {
  const uint64_t* words = (const uint64_t*)memory;
  for (uint64_t i = 0; i < (uint64_t)options.mib << 17; ++i) {
    if (words[i] != word(round, i)) return 0;
  }
  return 1;
}
