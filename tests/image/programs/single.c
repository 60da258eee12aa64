// One thread, heap by brk and by mmap, floating-point state in registers.
#include "program.h"

int main(void) {
  const size_t count = 1 << 16;
  double* values = malloc(count * sizeof *values);
  uint64_t sum = 1;
  for (size_t i = 0; i < count; ++i) values[i] = (double)i;
  for (int step = 0; step < STEPS; ++step) {
    double total = 0;
    for (int round = 0; round < 4; ++round) {
      for (size_t i = 1; i < count; ++i) {
        values[i] = values[i] * 0.75 + values[i - 1] / 3 + step;
        total += values[i];
      }
    }
    char* small = malloc(100 + (size_t)step * 10);
    memset(small, step, 100);
    sum = mix_bytes(mix_bytes(sum, &total, sizeof total), small, 100);
    if (step % 3 == 0) free(small);
    step_done(step, sum);
    rest();
  }
  return 7;
}
