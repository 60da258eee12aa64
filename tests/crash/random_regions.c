#include "random_regions.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "backstay/backstay.h"

enum { regions_max = 12 };

typedef struct {
  char name[64];
  unsigned char* data;
  size_t bytes;
  uint64_t seed;
} region;

static region regions[regions_max];
static int count;
static const char* wrong = "";

/* SplitMix64, public domain (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
 */
static uint64_t next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static size_t random_length(uint64_t* state) {
  static const size_t most[] = {1, 2, 64, 4096, 4097, 100000, 1048576, 3000000};
  return 1 + next(state) % most[next(state) % (sizeof most / sizeof *most)];
}

int random_regions_protect(unsigned long seed, int rank) {
  static const backstay_type types[] = {BACKSTAY_BYTE,   BACKSTAY_INT8,  BACKSTAY_INT16,
                                        BACKSTAY_UINT32, BACKSTAY_INT64, BACKSTAY_FLOAT,
                                        BACKSTAY_DOUBLE};
  static const size_t sizes[] = {1, 1, 2, 4, 8, 4, 8};
  uint64_t state = seed * 1000 + (uint64_t)rank; /* each rank has regions of its own */
  count = (int)(next(&state) % regions_max);
  for (int r = 0; r < count; ++r) {
    const size_t type = next(&state) % (sizeof types / sizeof *types);
    const size_t length = (random_length(&state) + sizes[type] - 1) / sizes[type];
    regions[r].seed = next(&state);
    regions[r].bytes = length * sizes[type];
    regions[r].data = malloc(regions[r].bytes);
    snprintf(regions[r].name, sizeof regions[r].name, "region %d of %lu", r, seed);
    const int code = backstay_protect(regions[r].name, regions[r].data, length, types[type]);
    if (code != BACKSTAY_OK) return code;
  }
  return BACKSTAY_OK;
}

/* Bytes change in every step in some regions, in others every few steps, so that some versions hold
 * equal bytes. */
static uint64_t state_at(const region* r, long step) {
  return r->seed ^ ((uint64_t)(step / (long)(1 + r->seed % 3)) << 32);
}

void random_regions_compute(long step) {
  for (int r = 0; r < count; ++r) {
    uint64_t state = state_at(&regions[r], step);
    for (size_t at = 0; at < regions[r].bytes; ++at) {
      if (at % 64 == 0) next(&state);
      regions[r].data[at] = (unsigned char)((state >> (at % 57)) + at);
    }
  }
}

int random_regions_exact(long step) {
  for (int r = 0; r < count; ++r) {
    uint64_t state = state_at(&regions[r], step);
    for (size_t at = 0; at < regions[r].bytes; ++at) {
      if (at % 64 == 0) next(&state);
      if (regions[r].data[at] == (unsigned char)((state >> (at % 57)) + at)) continue;
      wrong = regions[r].name;
      return 0;
    }
  }
  return 1;
}

const char* random_regions_wrong(void) { return wrong; }
