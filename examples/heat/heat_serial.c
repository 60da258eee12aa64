/* The same plate in a program of one process: no MPI at all. ./heat_serial [steps] [rows] [columns]
 */
#include <backstay/backstay.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rows, cols;
static double *u, *next;

static void step(void) {
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j < cols - 1; j++) {
      const double* c = u + (size_t)i * cols + j;
      next[c - u] = c[0] + 0.1 * (((c[-cols] + c[cols]) + (c[-1] + c[1])) - 4.0 * c[0]);
    }
  memcpy(u + cols, next + cols, (size_t)rows * cols * sizeof *u);
}

static uint64_t checksum(void) {
  uint64_t sum = 0, bits;
  for (size_t i = cols; i < (size_t)(rows + 1) * cols; i++) sum += (memcpy(&bits, u + i, 8), bits);
  return sum;
}

static void check(int code) {
  if (code == BACKSTAY_OK) return;
  fprintf(stderr, "heat_serial: %s\n", backstay_error_message());
  exit(1);
}

int main(int argc, char** argv) {
  int64_t n = 0, steps = argc > 1 ? atol(argv[1]) : 1000;
  rows = argc > 2 ? atoi(argv[2]) : 512;
  cols = argc > 3 ? atoi(argv[3]) : 512;
  u = calloc((size_t)(rows + 2) * cols, sizeof *u);
  next = calloc((size_t)(rows + 2) * cols, sizeof *u);
  for (int j = 0; j < cols; j++) u[j] = 100.0; /* the hot edge above row 0 */

  check(backstay_init(NULL));
  check(backstay_protect("n", &n, 1, BACKSTAY_INT64));
  check(backstay_protect("u", u + cols, (uint64_t)rows * cols, BACKSTAY_DOUBLE));
  int code = backstay_restart(NULL);
  if (code != BACKSTAY_ENONE) check(code);
  if (code == BACKSTAY_OK)
    printf("restart version %" PRIu64 " step %" PRId64 "\n", backstay_version(), n);

  while (n < steps && !backstay_stop_requested()) {
    step();
    n++;
    if (backstay_due() && backstay_checkpoint() == BACKSTAY_OK)
      printf("version %" PRIu64 " step %" PRId64 "\n", backstay_version(), n), fflush(stdout);
  }
  printf("done step %" PRId64 " checksum %016" PRIX64 "\n", n, checksum());
  backstay_finalize();
}
