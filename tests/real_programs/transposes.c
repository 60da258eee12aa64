// Fourier transforms of a cube that is cut along z: x and y at home, then all ranks exchange their
// parts, and z. Each step damps the waves and goes back, which is a second exchange.
//
//   transposes FILE STEPS [EDGE]      a power of two that the ranks divide
#include <complex.h>

#include "kernel.h"

typedef double complex Value;
static int n, planes;  // of the cube; of this rank
static Value *cube, *turned, *line, *roots;

// In place, of `line`; `sign` is that of the exponent.
static void transform(int sign) {
  for (int i = 1, k = 0; i < n; ++i) {
    int bit = n >> 1;
    for (; k & bit; bit >>= 1) k ^= bit;
    k ^= bit;
    if (i < k) {
      const Value kept = line[i];
      line[i] = line[k];
      line[k] = kept;
    }
  }
  for (int width = 2; width <= n; width *= 2) {
    for (int from = 0; from < n; from += width) {
      for (int i = 0; i < width / 2; ++i) {
        const Value root = roots[i * (n / width)];
        const Value other = (sign > 0 ? root : conj(root)) * line[from + i + width / 2];
        line[from + i + width / 2] = line[from + i] - other;
        line[from + i] += other;
      }
    }
  }
}

// `count` lines of n values that are `step` apart; line k begins at first(k).
static void transform_lines(Value* of, int sign, int planes_of, size_t plane, size_t apart,
                            size_t step) {
  for (int z = 0; z < planes_of; ++z) {
    for (int k = 0; k < n; ++k) {
      Value* first = of + (size_t)z * plane + (size_t)k * apart;
      for (int i = 0; i < n; ++i) line[i] = first[(size_t)i * step];
      transform(sign);
      for (int i = 0; i < n; ++i) first[(size_t)i * step] = line[i];
    }
  }
}

// [z here][y][x] to [y here][z][x], and back by the same way. Blocks go by pairs of ranks.
static void turn(Value* from, Value* to) {
  const size_t row = (size_t)n;
  const size_t block = (size_t)planes * (size_t)planes * row;
  Value *out = malloc(block * (size_t)ranks * sizeof *out),
        *in = malloc(block * (size_t)ranks * sizeof *in);
  for (int r = 0; r < ranks; ++r)
    for (int z = 0; z < planes; ++z)
      for (int y = 0; y < planes; ++y)
        memcpy(out + (size_t)r * block + ((size_t)y * planes + z) * row,
               from + ((size_t)z * n + (size_t)(r * planes + y)) * row, row * sizeof *out);
  MPI_Alltoall(out, (int)(2 * block), MPI_DOUBLE, in, (int)(2 * block), MPI_DOUBLE, MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r)
    for (int y = 0; y < planes; ++y)
      for (int z = 0; z < planes; ++z)
        memcpy(to + ((size_t)y * n + (size_t)(r * planes + z)) * row,
               in + (size_t)r * block + ((size_t)y * planes + z) * row, row * sizeof *in);
  free(out);
  free(in);
}

static double wave(int i) { return i < n / 2 ? i : i - n; }

// Of the turned cube: short waves more.
static void damp(void) {
  for (int y = 0; y < planes; ++y)
    for (int z = 0; z < n; ++z)
      for (int x = 0; x < n; ++x) {
        const double ky = wave(rank * planes + y), kz = wave(z), kx = wave(x);
        const double size = (kx * kx + ky * ky + kz * kz) / ((double)n * n);
        turned[((size_t)y * n + (size_t)z) * n + x] *= 1 / (1 + 0.05 * size) / ((double)n * n * n);
      }
}

static void step_once(void) {
  const size_t row = (size_t)n, plane = row * row;
  transform_lines(cube, 1, planes, plane, row, 1);  // x
  transform_lines(cube, 1, planes, plane, 1, row);  // y
  turn(cube, turned);
  transform_lines(turned, 1, planes, plane, 1, row);  // z
  damp();
  transform_lines(turned, -1, planes, plane, 1, row);
  turn(turned, cube);
  transform_lines(cube, -1, planes, plane, 1, row);
  transform_lines(cube, -1, planes, plane, row, 1);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const int steps = argument(argc, argv, 2, 100);
  n = argument(argc, argv, 3, 32);
  if (n % ranks != 0 || (n & (n - 1)) != 0) {
    fprintf(stderr, "%d ranks do not divide an edge of %d\n", ranks, n);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  planes = n / ranks;
  const size_t cells = (size_t)n * n * planes;
  cube = (Value*)numbers(2 * cells);
  turned = (Value*)numbers(2 * cells);
  line = (Value*)numbers(2 * (size_t)n);
  roots = (Value*)numbers((size_t)n);
  const double turn_of_one = 6.283185307179586 / n;
  for (int i = 0; i < n / 2; ++i) roots[i] = cexp(I * turn_of_one * i);
  for (size_t i = 0; i < cells; ++i) cube[i] = (double)((i + (size_t)rank * 31) % 97) / 97;
  for (int step = 0; step < steps; ++step) {
    cube[(size_t)step % cells] += 1;
    step_once();
    print_step(step, (const double*)cube, 2 * cells);
  }
  MPI_Finalize();
  return 0;
}
