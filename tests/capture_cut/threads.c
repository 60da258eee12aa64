// A program that asks for MPI_THREAD_MULTIPLE and ends itself without. Two threads call MPI by
// turns, or four at once.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

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

// --- several at once
// -----------------------------------------------------------------------------------

enum { together = 4, rounds = 3 };
static uint64_t (*part)(int, int);
static int step_of_all;
static uint64_t sums[together];
static pthread_barrier_t all_begin, all_end;
static MPI_Comm of_thread[together];

// A signal may find a thread in a call, with the FS base of the real MPI: its handler must not see
// a thread of the lower half, whose range of addresses this is.
static volatile sig_atomic_t is_elsewhere;
static void handle(int signal) {
  (void)signal;
  if ((pthread_self() - 0x4b5e00000000u) >> 40 == 0) is_elsewhere = 1;
}

static void play_part(int thread) {
  sigset_t blocked;
  sums[thread] = part(thread, step_of_all);
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  if (is_elsewhere || sigismember(&blocked, SIGALRM)) MPI_Abort(MPI_COMM_WORLD, 6);
}

static void* take_part(void* number) {
  const int thread = (int)(intptr_t)number;
  for (;;) {
    pthread_barrier_wait(&all_begin);
    play_part(thread);
    pthread_barrier_wait(&all_end);
  }
}

static void begin_together(uint64_t (*of_each)(int, int)) {
  int level = -1;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE || is_main() != 1) MPI_Abort(MPI_COMM_WORLD, 4);
  part = of_each;
  struct sigaction action = {0};
  const struct itimerval often = {{0, 5000}, {0, 5000}};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_barrier_init(&all_begin, NULL, together);
  pthread_barrier_init(&all_end, NULL, together);
  for (int i = 0; i < together; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[i]);
  for (intptr_t i = 1; i < together; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, take_part, (void*)i);
    pthread_detach(thread);
  }
}

// Each thread's part, this one's as well; nothing keeps them from running at once.
static uint64_t step_together(uint64_t (*of_each)(int, int), int step) {
  if (step == 0) begin_together(of_each);
  step_of_all = step;
  pthread_barrier_wait(&all_begin);
  play_part(0);
  pthread_barrier_wait(&all_end);
  return sum_of(sums, together);
}

// Blocking calls of all kinds, each thread by its own tag and communicator.
static uint64_t talk(int thread, int step) {
  uint64_t sum = (uint64_t)thread, all = 0;
  uint64_t mine[words], theirs[words];
  for (int i = 0; i < words; ++i) mine[i] = mix((uint64_t)(rank + step), (uint64_t)(i + thread));
  for (int round = 0; round < rounds; ++round) {
    if ((rank + round) % 2 == 0) {
      MPI_Send(mine, words, MPI_UINT64_T, right, thread, MPI_COMM_WORLD);
      MPI_Recv(theirs, words, MPI_UINT64_T, left, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Sendrecv(mine, words, MPI_UINT64_T, right, thread, theirs, words, MPI_UINT64_T, left,
                   thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    sum = mix(sum, sum_of(theirs, words));
    if ((thread + round) % 2 == 0) {
      MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, of_thread[thread]);
      sum = mix(sum, all);
    } else {
      MPI_Request request[2];
      MPI_Irecv(theirs, words, MPI_UINT64_T, left, 7, of_thread[thread], &request[0]);
      MPI_Issend(mine, words, MPI_UINT64_T, right, 7, of_thread[thread], &request[1]);
      MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
      sum = mix(sum, theirs[round]);
    }
    mine[round] = sum;
  }
  return sum;
}
static uint64_t talking(int step) { return step_together(talk, step); }

// Threads that wait for what another one of the same rank sends: by pairs, to this rank itself.
static uint64_t pass_on(int thread, int step) {
  static uint64_t from[together][large], to[together][large];
  const int count = size_of(step + thread / 2);
  uint64_t sum = 1;
  for (int i = 0; i < count; ++i) from[thread][i] = mix((uint64_t)(step + thread), (uint64_t)i);
  if (thread % 2 == 0) {
    MPI_Status status;
    MPI_Probe(rank, thread + 1, MPI_COMM_WORLD, &status);
    MPI_Recv(to[thread], count, MPI_UINT64_T, rank, thread + 1, MPI_COMM_WORLD, &status);
    MPI_Send(to[thread], count, MPI_UINT64_T, right, thread, MPI_COMM_WORLD);
    sum = sum_of(to[thread], count);
  } else {
    MPI_Ssend(from[thread], count, MPI_UINT64_T, rank, thread, MPI_COMM_WORLD);
    MPI_Recv(to[thread], count, MPI_UINT64_T, left, thread - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum = sum_of(to[thread], count);
  }
  return sum;
}
static uint64_t itself(int step) { return step_together(pass_on, step); }

// Two threads take whatever comes; which of them gets which message is not fixed, their sum is.
static uint64_t take_any(int thread, int step) {
  uint64_t sum = 0;
  for (int i = 0; i < 2 * rounds; ++i) {
    uint64_t word = mix((uint64_t)(rank + step), (uint64_t)(2 * i + thread));
    if (thread >= 2) {
      MPI_Send(&word, 1, MPI_UINT64_T, (rank + i) % ranks, thread, of_thread[0]);
    } else {
      MPI_Message message;
      MPI_Status status;
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, of_thread[0], &message, &status);
      MPI_Mrecv(&word, 1, MPI_UINT64_T, &message, &status);
      sum += mix(word, (uint64_t)status.MPI_TAG);
    }
  }
  return sum;
}
static uint64_t matched(int step) {
  step_together(take_any, step);
  MPI_Barrier(MPI_COMM_WORLD);
  return sums[0] + sums[1];
}

// Communicators, made by each thread out of its own. Ranks come to the threads in another order.
static uint64_t divide(int thread, int step) {
  MPI_Comm twin, part_of;
  uint64_t word = mix((uint64_t)(rank + step), (uint64_t)thread), all = 0, both = 0;
  for (int i = 0; i < ((thread + rank) % together) * 20; ++i) word = mix(word, 1);
  MPI_Comm_dup(of_thread[thread], &twin);
  MPI_Comm_split(of_thread[thread], (rank + step) % 2, 0, &part_of);
  MPI_Allreduce(&word, &all, 1, MPI_UINT64_T, MPI_SUM, part_of);
  MPI_Allreduce(&all, &both, 1, MPI_UINT64_T, MPI_SUM, twin);
  MPI_Comm_free(&part_of);
  MPI_Comm_free(&twin);
  return mix(all, both);
}
static uint64_t dividing(int step) { return step_together(divide, step); }

static MPI_Op op;

static void combine(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  if (bytes != 8) MPI_Abort(MPI_COMM_WORLD, 5);
  for (int i = 0; i < *count; ++i) ((uint64_t*)inout)[i] += ((uint64_t*)in)[i];
}

// Operations of the program, in which MPI is called, and threads that look instead of waiting.
static uint64_t add_up(int thread, int step) {
  uint64_t word = mix((uint64_t)(rank + step), (uint64_t)thread), all = 0;
  if (thread == 0) {
    for (int round = 0; round < rounds; ++round) {
      MPI_Allreduce(&word, &all, 1, MPI_UINT64_T, op, of_thread[0]);
      word = mix(word, all);
    }
  } else if (thread == 1) {
    MPI_Request request;
    MPI_Iallreduce(&word, &all, 1, MPI_UINT64_T, op, of_thread[1], &request);
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  } else if (thread == 2) {
    for (int there = 0; !there;) {
      MPI_Iprobe(left, 9, of_thread[2], &there, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&all, 1, MPI_UINT64_T, left, 9, of_thread[2], MPI_STATUS_IGNORE);
  } else {
    MPI_Ssend(&word, 1, MPI_UINT64_T, right, 9, of_thread[2]);
    MPI_Barrier(of_thread[3]);
  }
  return mix(word, all);
}
static uint64_t adding(int step) {
  if (step == 0) MPI_Op_create(combine, 1, &op);
  return step_together(add_up, step);
}

// Calls of some ranks alone, with the same members and other tags.
// (Of MPI_Intercomm_create at once MPICH 4.0.2 makes an error and Open MPI 4.1.4 hangs natively.)
static uint64_t gather_round(int thread, int step) {
  MPI_Group group;
  MPI_Comm made;
  uint64_t word = mix((uint64_t)(rank + step), (uint64_t)thread), all = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, thread, &made);
  MPI_Allreduce(&word, &all, 1, MPI_UINT64_T, MPI_SUM, made);
  MPI_Comm_free(&made);
  MPI_Group_free(&group);
  return all;
}
static uint64_t grouping(int step) { return step_together(gather_round, step); }

static const struct Pattern all[] = {
    {"turns", turns},       {"talking", talking}, {"itself", itself},    {"matched", matched},
    {"dividing", dividing}, {"adding", adding},   {"grouping", grouping}};

int main(int argc, char** argv) {
  threads_wanted = MPI_THREAD_MULTIPLE;
  return play(argc, argv, all, sizeof all / sizeof all[0]);
}
