// Programs that make communicators by a call of some ranks alone, and between two groups of ranks.
// Messages are under way meanwhile, with other tags than those calls: Open MPI 4.1 takes theirs for
// its own.
#include "pattern.h"

static uint64_t sum_over(MPI_Comm comm, uint64_t word) {
  uint64_t sum = 0;
  MPI_Allreduce(&word, &sum, 1, MPI_UINT64_T, MPI_BXOR, comm);
  return mix(sum, word);
}

// The neighbours' words, by messages that begin before the calls and end behind them.
enum { tag_of_calls = 23, tag_of_words };
struct Passing {
  uint64_t word, got;
  MPI_Request request[2];
};
static void begin_passing(struct Passing* one) {
  one->word = own[7];
  MPI_Isend(&one->word, 1, MPI_UINT64_T, right, tag_of_words, MPI_COMM_WORLD, &one->request[0]);
}
static uint64_t end_passing(struct Passing* one) {
  MPI_Irecv(&one->got, 1, MPI_UINT64_T, left, tag_of_words, MPI_COMM_WORLD, &one->request[1]);
  MPI_Waitall(2, one->request, MPI_STATUSES_IGNORE);
  return one->got;
}

static MPI_Comm make_of(int first, int last) {
  MPI_Group world, some;
  MPI_Comm made = MPI_COMM_NULL;
  int range[1][3] = {{last, first, -1}};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, range, &some);
  MPI_Comm_create_group(MPI_COMM_WORLD, some, tag_of_calls, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&world);
  return made;
}

// Pairs of neighbours, other ones in each step. One stays for some steps.
static uint64_t pairs(int step) {
  static MPI_Comm kept = MPI_COMM_NULL;
  const int other = (rank + step) % 2 == 0 ? rank + 1 : rank - 1;
  const int is_pair = other >= 0 && other < ranks;
  const int first = is_pair && other < rank ? other : rank;
  struct Passing passing;
  begin_passing(&passing);
  MPI_Comm pair = make_of(first, is_pair ? first + 1 : first);
  uint64_t sum = sum_over(pair, own[step % words]), got = 0;
  sum = mix(sum, end_passing(&passing));
  int size = 0, number = 0;
  MPI_Comm_size(pair, &size);
  MPI_Comm_rank(pair, &number);
  MPI_Sendrecv(&sum, 1, MPI_UINT64_T, (number + 1) % size, 1, &got, 1, MPI_UINT64_T,
               (number + 1) % size, 1, pair, MPI_STATUS_IGNORE);
  if (step % 6 == 0) {
    if (kept != MPI_COMM_NULL) MPI_Comm_free(&kept);
    kept = pair;
  } else {
    MPI_Comm_free(&pair);
  }
  return mix(mix(sum, got), sum_over(kept, got));
}

// One rank is left out and is late: it computes, and others wait for its message behind the call.
static uint64_t all_but_one(int step) {
  const int without = step % ranks;
  uint64_t sum = 1, word = own[3];
  if (rank == without) {
    for (int i = 0; i < 3; ++i) work(step + i);
    MPI_Send(&word, 1, MPI_UINT64_T, right, 2, MPI_COMM_WORLD);
  } else {
    MPI_Group world, rest;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &without, &rest);
    MPI_Comm_create_group(MPI_COMM_WORLD, rest, 0, &made);
    MPI_Group_free(&rest);
    MPI_Group_free(&world);
    sum = sum_over(made, word);
    if (rank == (without + 1) % ranks) {
      MPI_Recv(&word, 1, MPI_UINT64_T, without, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&made);
  }
  if (step % 3 == 0) MPI_Barrier(MPI_COMM_WORLD);
  return mix(sum, word);
}

// --- between two groups
// ------------------------------------------------------------------------

static uint64_t talk(MPI_Comm between, int step) {
  int size = 0, number = 0;
  uint64_t word = own[step % words], got = 0, sum = 0, root = word;
  MPI_Comm_remote_size(between, &size);
  MPI_Comm_rank(between, &number);
  const int to = number < size ? number : MPI_PROC_NULL;
  MPI_Request request[2];
  MPI_Irecv(&got, 1, MPI_UINT64_T, to, MPI_ANY_TAG, between, &request[0]);
  MPI_Isend(&word, 1, MPI_UINT64_T, to, 3, between, &request[1]);
  work(step);
  MPI_Allreduce(&word, &sum, 1, MPI_UINT64_T, MPI_BXOR, between);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  const int is_root = number == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&root, 1, MPI_UINT64_T, rank % 2 == 0 ? is_root : 0, between);
  return mix(mix(got, sum), root);
}

// Even and odd ranks; the leaders are the last ones.
static MPI_Comm make_between(MPI_Comm half) {
  int size = 0;
  MPI_Comm made = MPI_COMM_NULL;
  const int last_even = (ranks - 1) / 2 * 2, last_odd = (ranks - 2) / 2 * 2 + 1;
  MPI_Comm_size(half, &size);
  MPI_Intercomm_create(half, size - 1, MPI_COMM_WORLD, rank % 2 == 0 ? last_odd : last_even,
                       tag_of_calls, &made);
  return made;
}

static uint64_t sides(int step) {
  static MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  struct Passing passing;
  if (step == 0) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (step % 4 == 0) {
    if (step > 0) MPI_Comm_free(&between);
    begin_passing(&passing);
    between = make_between(half);
    own[1] ^= end_passing(&passing);
  }
  return talk(between, step);
}

// Communicators made of one between two groups.
static uint64_t merges(int step) {
  static MPI_Comm between = MPI_COMM_NULL;
  MPI_Comm all, twin;
  if (step % 10 == 0) {
    MPI_Comm half;
    if (step > 0) MPI_Comm_free(&between);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    between = make_between(half);
    MPI_Comm_free(&half);
  }
  uint64_t word = own[step % words];
  MPI_Request request[2];
  MPI_Irecv(&word, 1, MPI_UINT64_T, 0, MPI_ANY_TAG, between, &request[0]);
  int size = 0, number = 0;
  MPI_Comm_remote_size(between, &size);
  MPI_Comm_rank(between, &number);
  MPI_Intercomm_merge(between, (rank + step) % 2, &all);
  uint64_t sum = sum_over(all, own[2]);
  for (int to = 0; number == 0 && to < size; ++to) {
    MPI_Send(&own[5], 1, MPI_UINT64_T, to, 4, between);
  }
  MPI_Comm_dup(between, &twin);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  MPI_Comm_free(&all);
  sum = mix(sum, talk(twin, step));
  MPI_Comm_free(&twin);
  return mix(sum, word);
}

static const struct Pattern all[] = {
    {"pairs", pairs}, {"all_but_one", all_but_one}, {"sides", sides}, {"merges", merges}};

int main(int argc, char** argv) { return play(argc, argv, all, sizeof all / sizeof all[0]); }
