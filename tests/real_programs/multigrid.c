// Conjugate gradients with a 27-point operator and a V-cycle of multigrid before it: exchanges of
// faces on each level, and two sums over all ranks an iteration. The cube is cut along z.
//
//   multigrid FILE STEPS [EDGE [PLANES_A_RANK]]      both divisible by 8 for all levels
//
// Each step solves for another right-hand side.
#include "kernel.h"

enum { levels_at_most = 4, iterations = 4 };

typedef struct {
  int n, planes;  // without the halo of one cell around
  double *x, *b, *r;
} Level;
static Level levels[levels_at_most];
static int count;

static size_t cells(const Level* l) {
  return (size_t)(l->n + 2) * (size_t)(l->n + 2) * (size_t)(l->planes + 2);
}
static size_t at(const Level* l, int x, int y, int z) {
  return ((size_t)z * (size_t)(l->n + 2) + (size_t)y) * (size_t)(l->n + 2) + (size_t)x;
}
#define FOR_CELLS(l)                     \
  for (int z = 1; z <= (l)->planes; ++z) \
    for (int y = 1; y <= (l)->n; ++y)    \
      for (int x = 1; x <= (l)->n; ++x)

static void exchange(const Level* l, double* v) {
  const int plane = (l->n + 2) * (l->n + 2);
  const int below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int above = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  MPI_Request both[4];
  MPI_Irecv(v, plane, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &both[0]);
  MPI_Irecv(v + at(l, 0, 0, l->planes + 1), plane, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &both[1]);
  MPI_Isend(v + at(l, 0, 0, 1), plane, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &both[2]);
  MPI_Isend(v + at(l, 0, 0, l->planes), plane, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &both[3]);
  MPI_Waitall(4, both, MPI_STATUSES_IGNORE);
}

// The sum over the 26 neighbours.
static double around(const Level* l, const double* v, int x, int y, int z) {
  double sum = 0;
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) sum += v[at(l, x + dx, y + dy, z + dz)];
  return sum - v[at(l, x, y, z)];
}

static void multiply(const Level* l, double* v, double* out) {
  exchange(l, v);
  FOR_CELLS(l) out[at(l, x, y, z)] = 26.5 * v[at(l, x, y, z)] - around(l, v, x, y, z);
}

static void smooth(const Level* l, double* v, const double* b, int backwards) {
  exchange(l, v);
  FOR_CELLS(l) {
    const int w = backwards ? l->planes + 1 - z : z;
    v[at(l, x, y, w)] = (b[at(l, x, y, w)] + around(l, v, x, y, w)) / 26.5;
  }
}

static void cycle(int depth) {
  Level* l = &levels[depth];
  memset(l->x, 0, cells(l) * sizeof(double));
  smooth(l, l->x, l->b, 0);
  if (depth + 1 < count) {
    Level* coarse = &levels[depth + 1];
    multiply(l, l->x, l->r);
    FOR_CELLS(coarse) {
      const size_t fine = at(l, 2 * x - 1, 2 * y - 1, 2 * z - 1);
      coarse->b[at(coarse, x, y, z)] = l->b[fine] - l->r[fine];
    }
    cycle(depth + 1);
    FOR_CELLS(coarse)
    l->x[at(l, 2 * x - 1, 2 * y - 1, 2 * z - 1)] += coarse->x[at(coarse, x, y, z)];
  }
  smooth(l, l->x, l->b, 1);
}

static double dot(const Level* l, const double* a, const double* b) {
  double mine = 0, all;
  FOR_CELLS(l) mine += a[at(l, x, y, z)] * b[at(l, x, y, z)];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void solve(double* solution, double* p, double* q) {
  Level* l = &levels[0];  // its b is the residual
  double before = 0;
  memset(p, 0, cells(l) * sizeof(double));
  for (int i = 0; i < iterations; ++i) {
    cycle(0);
    const double now = dot(l, l->b, l->x);
    for (size_t c = 0; c < cells(l); ++c) p[c] = l->x[c] + (i > 0 ? now / before : 0) * p[c];
    multiply(l, p, q);
    const double alpha = now / dot(l, p, q);
    for (size_t c = 0; c < cells(l); ++c) solution[c] += alpha * p[c];
    FOR_CELLS(l) l->b[at(l, x, y, z)] -= alpha * q[at(l, x, y, z)];
    before = now;
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const int steps = argument(argc, argv, 2, 100);
  int n = argument(argc, argv, 3, 32), planes = argument(argc, argv, 4, 16);
  while (count < levels_at_most) {
    Level* l = &levels[count++];
    l->n = n;
    l->planes = planes;
    l->x = numbers(cells(l));
    l->b = numbers(cells(l));
    l->r = numbers(cells(l));
    if (n % 2 != 0 || planes % 2 != 0) break;
    n /= 2;
    planes /= 2;
  }
  const Level* l = &levels[0];
  double *x = numbers(cells(l)), *p = numbers(cells(l)), *q = numbers(cells(l));
  for (int step = 0; step < steps; ++step) {
    FOR_CELLS(l) {
      l->b[at(l, x, y, z)] += ((x * 3 + y * 5 + (z + rank * l->planes) * 7 + step) % 11) / 11.0;
    }
    solve(x, p, q);
    print_step(step, x, cells(l));
  }
  MPI_Finalize();
  return 0;
}
