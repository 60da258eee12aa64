/* Makes datatypes by each constructor of MPI, has them renewed, and says all that can be seen of
 * them, and which bytes they pick: the lines must be those of a run without renewals. */
#include <stdint.h>

#include "renewing.h"

enum { types_max = 64, bytes = 8192 };
static struct {
  const char* what;
  MPI_Datatype type;
  int is_committed;
} types[types_max];
static int count;

static MPI_Datatype* add(const char* what) {
  types[count].what = what;
  types[count].is_committed = count % 3 != 0;
  return &types[count++].type;
}
static MPI_Datatype any(int at) { return types[at].type; }

static void make_flat(void) {
  int lengths[3] = {2, 0, 3}, places[3] = {5, 1, 9}, blocks[2] = {7, 2};
  MPI_Aint far[3] = {40, 8, 100}, far_blocks[2] = {64, 4};
  MPI_Type_contiguous(5, MPI_INT, add("contiguous"));
  MPI_Type_contiguous(0, MPI_INT, add("contiguous of none"));
  MPI_Type_vector(3, 2, 4, MPI_SHORT, add("vector"));
  MPI_Type_vector(3, 1, -2, MPI_INT, add("vector backwards"));
  MPI_Type_create_hvector(4, 1, 20, MPI_DOUBLE, add("hvector"));
  MPI_Type_indexed(3, lengths, places, MPI_INT, add("indexed"));
  MPI_Type_create_hindexed(3, lengths, far, MPI_FLOAT, add("hindexed"));
  MPI_Type_create_indexed_block(2, 3, blocks, MPI_INT, add("indexed_block"));
  MPI_Type_create_hindexed_block(2, 3, far_blocks, MPI_INT, add("hindexed_block"));
  MPI_Type_create_resized(MPI_INT, -4, 24, add("resized"));
  MPI_Type_dup(MPI_DOUBLE_INT, add("dup of a pair"));
  MPI_Type_create_f90_real(6, 30, add("f90_real"));
  MPI_Type_create_f90_integer(9, add("f90_integer"));
  MPI_Type_create_f90_complex(6, 30, add("f90_complex"));
}

static void make_nested(void) {
  int lengths[4] = {1, 2, 1, 1}, sizes[3] = {6, 5, 4}, parts[3] = {2, 3, 2}, starts[3] = {1, 2, 0};
  int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, process[2] = {2, 2};
  int how[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, all[2] = {8, 8};
  MPI_Aint places[4] = {0, 64, 512, 900};
  MPI_Datatype inner[4] = {MPI_CHAR, any(2), any(5), any(9)};
  MPI_Type_create_struct(4, lengths, places, inner, add("struct"));
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, add("subarray"));
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, any(0), add("subarray, F"));
  MPI_Type_create_darray(4, rank % 4, 2, all, kinds, how, process, MPI_ORDER_C, MPI_INT,
                         add("darray"));
  MPI_Type_dup(any(14), add("dup of struct"));
  MPI_Datatype last = any(count - 1);
  MPI_Type_contiguous(2, last, add("contiguous of dup of struct"));
  last = any(count - 1);
  MPI_Type_create_resized(last, 0, 2048, add("resized of that"));
}

/* Built on types that are freed at once: they live on in what is built on them. */
static void make_of_freed(void) {
  MPI_Datatype one, two;
  MPI_Type_vector(2, 1, 3, MPI_INT, &one);
  MPI_Type_contiguous(2, one, &two);
  MPI_Type_free(&one);
  MPI_Type_set_name(two, "freed");
  MPI_Type_commit(&two);
  MPI_Type_create_hvector(2, 1, 100, two, add("of freed"));
  MPI_Type_dup(two, add("dup of freed"));
  MPI_Type_free(&two);
  MPI_Type_set_name(any(count - 1), "a name");
  const MPI_Datatype named = any(count - 1);
  MPI_Type_dup(named, add("dup of named"));
  MPI_Type_set_name(any(count - 2), "another name");
  one = MPI_INT;
  for (int i = 0; i < 200; ++i) {
    MPI_Type_contiguous(1, one, &two);
    if (one != MPI_INT) MPI_Type_free(&one);
    one = two;
  }
  *add("end of a chain") = one;
}

static void say_contents(const char* what, MPI_Datatype type) {
  int integers = 0, addresses = 0, datatypes = 0, combiner = 0, numbers[64];
  MPI_Aint places[64];
  MPI_Datatype parts[64];
  MPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
  say("%s: %d %d %d, %d", what, integers, addresses, datatypes, combiner);
  if (combiner == MPI_COMBINER_NAMED) return;
  MPI_Type_get_contents(type, integers, addresses, datatypes, numbers, places, parts);
  for (int i = 0; i < integers; ++i) say("%s: number %d", what, numbers[i]);
  for (int i = 0; i < addresses; ++i) say("%s: place %ld", what, (long)places[i]);
  renew(9);
  for (int i = 0; i < datatypes; ++i) {
    int size = 0, inner = 0;
    MPI_Type_size(parts[i], &size);
    MPI_Type_get_envelope(parts[i], &integers, &addresses, &combiner, &inner);
    say("%s: part of %d bytes, %d", what, size, inner);
    if (inner != MPI_COMBINER_NAMED) MPI_Type_free(&parts[i]);
  }
}

static unsigned sum_of(const char* from, int length) {
  unsigned sum = 1;
  for (int i = 0; i < length; ++i) sum = sum * 31 + (unsigned char)from[i];
  return sum;
}

static void say_bytes(const char* what, MPI_Datatype type) {
  static char from[2 * bytes], to[2 * bytes], packed[bytes];
  int size = 0, at = 0;
  for (int i = 0; i < 2 * bytes; ++i) from[i] = (char)(i * 7 + i / 256);
  memset(to, 0, sizeof to);
  MPI_Pack_size(1, type, MPI_COMM_WORLD, &size);
  MPI_Pack(from + bytes, 1, type, packed, bytes, &at, MPI_COMM_WORLD);
  say("%s: packed %d, %08x", what, at, sum_of(packed, at));
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  MPI_Sendrecv(from + bytes, 1, type, next, 1, to + bytes, 1, type, before, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  say("%s: received %08x", what, sum_of(to, sizeof to));
}

static void say_type(const char* what, MPI_Datatype type, int is_committed) {
  int size = 0, length = 0;
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  char name[MPI_MAX_OBJECT_NAME] = "";
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &low, &extent);
  MPI_Type_get_true_extent(type, &true_low, &true_extent);
  MPI_Type_get_name(type, name, &length);
  say("%s: size %d, %ld %ld, %ld %ld, '%s'", what, size, (long)low, (long)extent, (long)true_low,
      (long)true_extent, name);
  if (is_committed) say_bytes(what, type);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) return 2;
  begin(argv[1]);
  make_flat();
  make_nested();
  make_of_freed();
  for (int i = 0; i < count; ++i) {
    if (types[i].is_committed) MPI_Type_commit(&types[i].type);
  }
  renew(3);
  for (int i = 0; i < count; ++i) say_type(types[i].what, any(i), types[i].is_committed);
  for (int i = 0; i < count; ++i) say_contents(types[i].what, any(i));
  for (int i = 0; i < count; ++i) {
    if (!types[i].is_committed) MPI_Type_commit(&types[i].type);
  }
  renew(9);
  MPI_Datatype same;
  MPI_Type_create_f90_real(6, 30, &same);
  say("the same f90 type: %d", same == any(11));
  for (int i = 0; i < count; ++i) {
    say_type(types[i].what, any(i), 1);
    if (strncmp(types[i].what, "f90", 3) != 0) MPI_Type_free(&types[i].type);
    if (i % 5 == 0) renew(9);
  }
  say("alive but what MPI keeps: %d", alive() == 0 ? 0 : alive() - 6);
  MPI_Finalize();
  if (argc > 2) say("%d renewals", renewals);
  return 0;
}
