// A program that asks for as many threads in MPI as there can be, takes what it gets, and has two
// that call MPI by turns.
#include <pthread.h>

#include "pattern.h"

static pthread_t worker;
static pthread_barrier_t begins, ends;
static int step_of_worker;
static uint64_t sum_of_worker;

static int is_main(void) {
  int flag = -1;
  MPI_Is_thread_main(&flag);
  return flag;
}

static uint64_t pass(int step) {
  MPI_Request request[2];
  MPI_Irecv(got, words, MPI_UINT64_T, left, 1, MPI_COMM_WORLD, &request[0]);
  MPI_Isend(own, words, MPI_UINT64_T, right, 1, MPI_COMM_WORLD, &request[1]);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  return mix(sum_of(got, words), (uint64_t)step);
}

static void* work_by_turns(void* nothing) {
  (void)nothing;
  for (;;) {
    pthread_barrier_wait(&begins);
    if (step_of_worker < 0) return NULL;
    sum_of_worker = mix(pass(step_of_worker), is_main() == 0 ? 3 : (uint64_t)rank);
    pthread_barrier_wait(&ends);
  }
}

// The worker's messages, and then a sum by this thread, which computes meanwhile.
static uint64_t turns(int step) {
  static uint64_t state = 1;
  if (step == 0) {
    int level = -1;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED || is_main() != 1) MPI_Abort(MPI_COMM_WORLD, 4);
    pthread_barrier_init(&begins, NULL, 2);
    pthread_barrier_init(&ends, NULL, 2);
    pthread_create(&worker, NULL, work_by_turns, NULL);
  }
  step_of_worker = step;
  pthread_barrier_wait(&begins);
  for (int i = 0; i < 40 * (1 + (step + rank) % 3); ++i) state = mix(state, (uint64_t)i);
  pthread_barrier_wait(&ends);
  uint64_t mine = mix(state, sum_of_worker), sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  return sum;
}

static const struct Pattern all[] = {{"turns", turns}};

int main(int argc, char** argv) {
  threads_wanted = MPI_THREAD_MULTIPLE;
  return play(argc, argv, all, sizeof all / sizeof all[0]);
}
