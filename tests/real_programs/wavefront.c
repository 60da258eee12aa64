// Pipelined wavefronts: a grid in blocks of rows, swept from each of its four corners. A rank
// begins a tile as soon as its neighbour has sent the edge of its own, so that several messages of
// one pair of ranks are always under way.
//
//   wavefront FILE STEPS [COLUMNS [ROWS_A_RANK [TILE]]]
#include "kernel.h"

static int columns, rows, tile;
static double *grid, *edge;

// Tile `at` of one sweep, in the direction `dx`, `dy` (1 or -1).
static void sweep_tile(int at, int dx, int dy) {
  const int begin = dx > 0 ? at * tile : columns - 1 - at * tile;
  for (int n = 0; n < rows; ++n) {
    const int y = dy > 0 ? n : rows - 1 - n;
    double* row = grid + (size_t)y * columns;
    const double* above = n == 0 ? edge : row - dy * columns;
    for (int m = 0, x = begin; m < tile && x >= 0 && x < columns; ++m, x += dx) {
      const double before = x - dx >= 0 && x - dx < columns ? row[x - dx] : 1.0;
      row[x] = 0.4 * row[x] + 0.35 * before + 0.249 * above[x] + 1e-3 * ((x * 7 + y) % 5);
    }
  }
}

static int first_column(int at, int dx, int* width) {
  const int left = at * tile;
  *width = left + tile <= columns ? tile : columns - left;
  return dx > 0 ? left : columns - left - *width;
}

static void sweep(int dx, int dy) {
  const int from = rank - dy, to = rank + dy;
  const int tiles = (columns + tile - 1) / tile;
  MPI_Request* sent = malloc(sizeof(MPI_Request) * (size_t)tiles);
  for (int x = 0; x < columns; ++x) edge[x] = 0.5;
  for (int at = 0; at < tiles; ++at) {
    int width;
    const int x = first_column(at, dx, &width);
    if (from >= 0 && from < ranks)
      MPI_Recv(edge + x, width, MPI_DOUBLE, from, at, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sweep_tile(at, dx, dy);
    sent[at] = MPI_REQUEST_NULL;
    const double* last = grid + (size_t)(dy > 0 ? rows - 1 : 0) * columns + x;
    if (to >= 0 && to < ranks)
      MPI_Isend(last, width, MPI_DOUBLE, to, at, MPI_COMM_WORLD, &sent[at]);
  }
  for (int at = 0; at < tiles; ++at) MPI_Wait(&sent[at], MPI_STATUS_IGNORE);
  free(sent);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const int steps = argument(argc, argv, 2, 100);
  columns = argument(argc, argv, 3, 1000);
  rows = argument(argc, argv, 4, 200);
  tile = argument(argc, argv, 5, 50);
  grid = numbers((size_t)columns * (size_t)rows);
  edge = numbers((size_t)columns);
  for (int i = 0; i < columns * rows; ++i) grid[i] = ((i + rank * 31) % 97) / 97.0;
  for (int step = 0; step < steps; ++step) {
    for (int corner = 0; corner < 4; ++corner) sweep(corner & 1 ? -1 : 1, corner & 2 ? -1 : 1);
    print_step(step, grid, (size_t)columns * (size_t)rows);
  }
  free(grid);
  free(edge);
  MPI_Finalize();
  return 0;
}
