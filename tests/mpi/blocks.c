/* A global array of 1 to 4 dimensions in blocks, saved by one number of ranks and brought back by
 * another.
 *
 * blocks save|load SHAPE GRID [FLAW]     for example: blocks save 12x10 2x3
 *   save: takes one version more; each element holds its place in the global array and the
 *   version's number load: restarts, compares every element, prints "good version=V" or the error
 * GRID ranks share SHAPE elements. FLAW spoils what is saved:
 *   halo    blocks overlap by one element        hole    rank 0 saves nothing of the array
 *   differ  a region without a place differs     file    rank 0 saves a file, too
 * or adds regions, here and there (both need it): many    201 without a place, one of them of 20 MB
 * or waits for another level than local:          protected
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstay/backstay_mpi.h"

static int rank, ranks;
static int64_t lap;
static backstay_array place;
static uint64_t elements = 1;
static int32_t* data;
static unsigned char* copies[201]; /* `many`: the same on all ranks */
static int copies_count;

static int numbers(const char* text, uint64_t* out) {
  int count = 0;
  for (char* end; count < 4; text = end + 1) {
    out[count++] = strtoull(text, &end, 10);
    if (*end != 'x') break;
  }
  return count;
}

static void make_place(const char* shape, const char* grid_text, int halo) {
  uint64_t grid[4], left = (uint64_t)rank;
  place.dims = numbers(shape, place.global_shape);
  if (numbers(grid_text, grid) != place.dims) MPI_Abort(MPI_COMM_WORLD, 4);
  for (int d = place.dims - 1; d >= 0; d--, left /= grid[d + 1]) {
    const uint64_t all = place.global_shape[d], at = left % grid[d];
    uint64_t begin = all * at / grid[d], end = all * (at + 1) / grid[d];
    if (halo && begin > 0) begin--;
    if (halo && end < all) end++;
    place.global_offset[d] = begin;
    place.shape[d] = end - begin;
    elements *= end - begin;
  }
}

/* What the element at `index` of this rank's block must hold. */
static int32_t value_of(uint64_t index) {
  uint64_t at = 0, stride = 1;
  for (int d = place.dims - 1; d >= 0; d--) {
    at += (place.global_offset[d] + index % place.shape[d]) * stride;
    index /= place.shape[d];
    stride *= place.global_shape[d];
  }
  return (int32_t)(at * 7 + (uint64_t)lap * 1000003);
}

static uint64_t copy_bytes(int index) { return index == 0 ? 20000000 : 1000; }

static unsigned char copy_value(int index, uint64_t at) {
  return (unsigned char)(at * 31 + (at >> 16) + (uint64_t)index * 7 + (uint64_t)lap);
}

static int all_ranks(int mine) {
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

static int compare(void) {
  for (uint64_t i = 0; i < elements; i++)
    if (data[i] != value_of(i)) return 0;
  for (int c = 0; c < copies_count; c++)
    for (uint64_t i = 0; i < copy_bytes(c); i++)
      if (copies[c][i] != copy_value(c, i)) return 0;
  return 1;
}

static int untouched(void) {
  for (uint64_t i = 0; i < elements; i++)
    if (data[i] != -1) return 0;
  return lap == -1;
}

static void check(int code) {
  if (code == BACKSTAY_OK) return;
  fprintf(stderr, "blocks: rank %d: %s\n", rank, backstay_error_message());
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void save(const char* flaw) {
  lap = (int64_t)backstay_version() + 1;
  for (uint64_t i = 0; i < elements; i++) data[i] = value_of(i);
  for (int c = 0; c < copies_count; c++)
    for (uint64_t i = 0; i < copy_bytes(c); i++) copies[c][i] = copy_value(c, i);
  if (strcmp(flaw, "differ") == 0) lap += rank;
  check(backstay_checkpoint());
  const int copied = strcmp(flaw, "protected") == 0;
  check(backstay_wait(backstay_version(), copied ? BACKSTAY_PROTECTED : BACKSTAY_LOCAL, 60));
  if (rank == 0) printf("saved version=%" PRIu64 "\n", backstay_version());
}

static void report(int code) {
  const int good = all_ranks(code == BACKSTAY_OK ? compare() : untouched());
  if (rank != 0) return;
  if (code == BACKSTAY_OK) {
    printf("%s version=%" PRIu64 "\n", good ? "good" : "WRONG BYTES", backstay_version());
  } else {
    printf("%s code=%d %s\n", good ? "untouched" : "TOUCHED", code, backstay_error_message());
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int saving = strcmp(argv[1], "save") == 0;
  const char* flaw = argc > 4 ? argv[4] : "";
  make_place(argv[2], argv[3], strcmp(flaw, "halo") == 0);
  if (strcmp(flaw, "hole") == 0 && rank == 0) elements = place.shape[0] = 0;
  data = malloc((elements + 1) * sizeof *data);
  memset(data, 0xff, (elements + 1) * sizeof *data);
  lap = -1;
  check(backstay_init_mpi(MPI_COMM_WORLD, NULL));
  check(backstay_protect_array("u", data, &place, BACKSTAY_INT32));
  check(backstay_protect("lap", &lap, 1, BACKSTAY_INT64));
  for (int c = 0; strcmp(flaw, "many") == 0 && c < 201; c++, copies_count++) {
    char name[32];
    snprintf(name, sizeof name, "copy %d", c);
    copies[c] = calloc(copy_bytes(c), 1);
    check(backstay_protect(name, copies[c], copy_bytes(c), BACKSTAY_UINT8));
  }
  if (saving && strcmp(flaw, "file") == 0 && rank == 0) {
    char path[4096];
    check(backstay_route_file("notes.txt", path, sizeof path));
    FILE* file = fopen(path, "w");
    fputs("mine\n", file);
    fclose(file);
  }
  const int code = backstay_restart(NULL);
  if (!saving) report(code);
  if (saving && code != BACKSTAY_ENONE) check(code);
  if (saving) save(flaw);
  check(backstay_finalize());
  MPI_Finalize();
  return 0;
}
