// Threads that take turns behind a recursive mutex and an error-checking one, a lock for writing,
// thread-local variables, signals to single threads, OpenMP, and a join at the end.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "program.h"

enum { THREADS = 4, TURNS = STEPS * THREADS };
static pthread_mutex_t recursive, checking;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn = 0;
static uint64_t shared = 1;
static __thread uint64_t own = 0;
static volatile int signals_seen[THREADS];
static __thread long self = 0;

static void on_signal(int number) {
  (void)number;
  signals_seen[self]++;
}

static void take_turn(void) {
  need(pthread_mutex_lock(&checking) == 0, "lock");
  need(pthread_mutex_lock(&recursive) == 0, "recursive lock, second time");
  own = mix(own, (uint64_t)turn);
  shared = mix(shared, own);
  ++turn;
  need(pthread_mutex_unlock(&recursive) == 0, "recursive unlock");
  need(pthread_mutex_unlock(&checking) == 0, "unlock: not the owner any more");
}

static void* run(void* argument) {
  self = *(long*)argument;
  own = (uint64_t)self + 10;
  for (;;) {
    need(pthread_mutex_lock(&recursive) == 0, "recursive lock");
    while (turn < TURNS && turn % THREADS != self) pthread_cond_wait(&changed, &recursive);
    const int over = turn >= TURNS;
    if (!over) take_turn();
    own = work(own, 1);  // held meanwhile: cuts fall here
    need(pthread_mutex_unlock(&recursive) == 0, "recursive unlock: not the owner any more");
    pthread_cond_broadcast(&changed);
    if (over) return argument;
    struct timespec time = {0, 2 * 1000 * 1000};
    nanosleep(&time, NULL);
    need(sched_getcpu() >= 0, "sched_getcpu");
  }
}

static void make_mutex(pthread_mutex_t* mutex, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutex_init(mutex, &attributes);
}

static void compute(uint64_t* field, size_t count) {
  for (int step = 0; step < STEPS; ++step) {
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(3)
    for (size_t i = 0; i < count; ++i) {
      field[i] = mix(field[i], (uint64_t)step);
      sum += field[i];
    }
    step_done(step, sum);
    need(pthread_rwlock_wrlock(&written) == 0, "lock for writing");
    rest();
    need(pthread_rwlock_unlock(&written) == 0, "unlock");
    need(pthread_rwlock_tryrdlock(&written) == 0, "lock for reading: a writer seems to have it");
    need(pthread_rwlock_unlock(&written) == 0, "unlock");
  }
}

int main(void) {
  make_mutex(&recursive, PTHREAD_MUTEX_RECURSIVE);
  make_mutex(&checking, PTHREAD_MUTEX_ERRORCHECK);
  signal(SIGUSR1, on_signal);
  pthread_t threads[THREADS];
  long numbers[THREADS];
  for (long i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    need(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0, "pthread_create");
  }
  const size_t count = 1 << 16;
  uint64_t* field = calloc(count, sizeof *field);
  compute(field, count);
  int sent = 0;
  for (int i = 0; i < THREADS; ++i) sent += pthread_kill(threads[i], SIGUSR1) == 0;
  for (int i = 0; i < THREADS; ++i) need(pthread_join(threads[i], NULL) == 0, "pthread_join");
  printf("%d turns %016" PRIx64 " %s\n", turn, shared, sent > 0 ? "signals" : "ended");
  return 0;
}
