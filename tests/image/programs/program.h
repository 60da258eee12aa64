// What the small programs share: each computes a checksum in steps and prints one line a step, so
// that a run that was killed and brought back can be compared with an undisturbed one.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEPS 24

static inline void need(int good, const char* what) {
  if (good) return;
  printf("failed: %s\n", what);
  fflush(stdout);
  _exit(1);
}

static inline uint64_t mix(uint64_t sum, uint64_t value) {
  sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return sum ^ sum >> 29;
}

static inline uint64_t mix_bytes(uint64_t sum, const void* bytes, size_t size) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < size; ++i) sum = mix(sum, at[i]);
  return sum;
}

// Keeps the processor busy for about as long, whatever the machine: cuts fall into computing too.
static inline uint64_t work(uint64_t sum, int rounds) {
  for (int i = 0; i < rounds * 1000; ++i) sum = mix(sum, (uint64_t)i);
  return sum;
}

static inline void step_done(int step, uint64_t sum) {
  printf("%d %016" PRIx64 "\n", step, sum);
  fflush(stdout);
}

static inline void rest(void) {
  struct timespec time = {0, 10 * 1000 * 1000};
  need(nanosleep(&time, NULL) == 0, "nanosleep was interrupted");
}
