// Alternating directions: each step solves tridiagonal systems along all lines of a cube in x, y
// and z. The cube is cut along y and z, so a line's elimination goes on at the next rank of its row
// or column, and comes back from there; lines go in bunches, so that several are under way.
//
//   alternating FILE STEPS [COLUMNS [ROWS_A_RANK]]
#include "kernel.h"

static int n, own;     // columns; rows and planes of this rank
static double *u, *c;  // the cube, and the factors of the elimination
static const double coupling = 0.2;

// One direction: its lines come in `bunches` of n, one beside the other.
typedef struct {
  MPI_Comm line;  // the ranks along it
  size_t step;    // from one point of a line to the next
  size_t bunch;   // from one bunch to the next
} Direction;

static size_t at(const Direction* d, int bunch, int i) {
  return (size_t)bunch * d->bunch + (size_t)i * d->step;
}

// `edge`: n factors and n values of the point before the first one here.
static void eliminate(const Direction* d, int bunch, double* edge) {
  for (int i = 0; i < own; ++i) {
    double* value = u + at(d, bunch, i);
    double* factor = c + at(d, bunch, i);
    for (int x = 0; x < n; ++x) {
      const double pivot = 1 / (1 + 2 * coupling + coupling * edge[x]);
      edge[x] = factor[x] = -coupling * pivot;
      edge[n + x] = value[x] = (value[x] + coupling * edge[n + x]) * pivot;
    }
  }
}

// `edge`: n values of the point behind the last one here.
static void substitute(const Direction* d, int bunch, double* edge) {
  for (int i = own - 1; i >= 0; --i) {
    double* value = u + at(d, bunch, i);
    const double* factor = c + at(d, bunch, i);
    for (int x = 0; x < n; ++x) edge[x] = value[x] -= factor[x] * edge[x];
  }
}

static void wait_for_all(MPI_Request* sent) {
  for (int bunch = 0; bunch < own; ++bunch) MPI_Wait(&sent[bunch], MPI_STATUS_IGNORE);
}

// All bunches of one direction: forwards through the ranks, then backwards.
static void solve(const Direction* d, double* edges, MPI_Request* sent) {
  int before, behind, place, count;
  MPI_Comm_rank(d->line, &place);
  MPI_Comm_size(d->line, &count);
  before = place > 0 ? place - 1 : MPI_PROC_NULL;
  behind = place + 1 < count ? place + 1 : MPI_PROC_NULL;
  for (int bunch = 0; bunch < own; ++bunch) {
    double* edge = edges + (size_t)bunch * 2 * n;
    for (int x = 0; x < 2 * n; ++x) edge[x] = 0;
    MPI_Recv(edge, 2 * n, MPI_DOUBLE, before, bunch, d->line, MPI_STATUS_IGNORE);
    eliminate(d, bunch, edge);
    MPI_Isend(edge, 2 * n, MPI_DOUBLE, behind, bunch, d->line, &sent[bunch]);
  }
  wait_for_all(sent);
  for (int bunch = 0; bunch < own; ++bunch) {
    double* edge = edges + (size_t)bunch * 2 * n;
    for (int x = 0; x < n; ++x) edge[x] = 0;
    MPI_Recv(edge, n, MPI_DOUBLE, behind, own + bunch, d->line, MPI_STATUS_IGNORE);
    substitute(d, bunch, edge);
    MPI_Isend(edge, n, MPI_DOUBLE, before, own + bunch, d->line, &sent[bunch]);
  }
  wait_for_all(sent);
}

// Lines in x are whole at each rank.
static void solve_x(void) {
  for (int row = 0; row < own * own; ++row) {
    double *value = u + (size_t)row * n, *factor = c + (size_t)row * n;
    double last_factor = 0, last = 0;
    for (int x = 0; x < n; ++x) {
      const double pivot = 1 / (1 + 2 * coupling + coupling * last_factor);
      last_factor = factor[x] = -coupling * pivot;
      last = value[x] = (value[x] + coupling * last) * pivot;
    }
    for (int x = n - 2; x >= 0; --x) value[x] -= factor[x] * value[x + 1];
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const int steps = argument(argc, argv, 2, 100);
  n = argument(argc, argv, 3, 64);
  own = argument(argc, argv, 4, 32);
  int dims[2] = {0, 0}, periods[2] = {0, 0}, along_y[2] = {0, 1}, along_z[2] = {1, 0};
  MPI_Comm grid;
  Direction y = {MPI_COMM_NULL, (size_t)n, (size_t)n * own};
  Direction z = {MPI_COMM_NULL, (size_t)n * own, (size_t)n};
  MPI_Dims_create(ranks, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Cart_sub(grid, along_y, &y.line);
  MPI_Cart_sub(grid, along_z, &z.line);
  const size_t cells = (size_t)n * own * own;
  u = numbers(cells);
  c = numbers(cells);
  double* edges = numbers((size_t)own * 2 * n);
  MPI_Request* sent = malloc(sizeof(MPI_Request) * (size_t)own);
  for (size_t i = 0; i < cells; ++i) u[i] = (double)((i + (size_t)rank * 31) % 97) / 97;
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < cells; ++i) u[i] += 1e-3 * (double)((i * 7 + (size_t)step) % 5);
    solve_x();
    solve(&y, edges, sent);
    solve(&z, edges, sent);
    print_step(step, u, cells);
  }
  MPI_Comm_free(&z.line);
  MPI_Comm_free(&y.line);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return 0;
}
