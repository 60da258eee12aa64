// Mutexes of every kind that knows its owner, held over a restart: their owner, and nobody else,
// can unlock them, and threads that wait for them get them.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "program.h"

#define KINDS 24
static pthread_mutex_t all[KINDS], wanted[4], hurried[2], left_behind;
static unsigned taken[4];
static int over;

static void make(pthread_mutex_t* mutex, int type, int robust, int protocol, int shared) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, type);
  pthread_mutexattr_setrobust(&kind, robust);
  pthread_mutexattr_setprotocol(&kind, protocol);
  pthread_mutexattr_setpshared(&kind, shared);
  need(pthread_mutex_init(mutex, &kind) == 0, "pthread_mutex_init");
}

static void lock(pthread_mutex_t* mutex) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 30;
  need(pthread_mutex_timedlock(mutex, &end) == 0, "lock");
}

// Types: normal, recursive, error-checking.
static void use(int number) {
  pthread_mutex_t* mutex = &all[number];
  if (number % 3 == 2) need(pthread_mutex_lock(mutex) == EDEADLK, "it knows its owner");
  if (number % 3 == 1) need(pthread_mutex_lock(mutex) == 0, "its owner locks it again");
  if (number % 3 == 1) need(pthread_mutex_unlock(mutex) == 0, "its owner unlocks it once");
  need(pthread_mutex_unlock(mutex) == 0, "its owner unlocks it");
  lock(mutex);
}

// Zero, at an address whose upper half is the id of this thread. The window of Backstay and places
// near other programs' usual ones stay free.
static unsigned* place_like_id(void) {
  const int tid = gettid();
  const int is_place = tid < 0x4a00 || (tid > 0x5000 && tid < 0x7000);
  void* place = is_place ? (void*)((uintptr_t)tid << 32) : NULL;
  place = mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(place != MAP_FAILED, "mmap");
  return place;
}

static void* take(void* argument) {
  pthread_mutex_t* mutex = argument;
  unsigned* count = place_like_id();
  for (int i = 0; i < STEPS; ++i) {
    lock(mutex);
    ++*count;
    rest();
    need(pthread_mutex_unlock(mutex) == 0, "unlock");
  }
  lock(mutex);
  taken[mutex - wanted] += *count;
  need(pthread_mutex_unlock(mutex) == 0, "unlock");
  return argument;
}

// A cut mostly comes while it takes or gives the lock back.
static void* hurry(void* argument) {
  pthread_mutex_t* mutex = argument;
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
    lock(mutex);
    need(pthread_mutex_unlock(mutex) == 0, "unlock in a hurry");
  }
  return argument;
}

static void* end_with_it(void* mutex) {
  lock(mutex);
  return mutex;
}

static void* try_all(void* argument) {
  for (int i = 0; i < KINDS; ++i) need(pthread_mutex_trylock(&all[i]) == EBUSY, "it is held");
  return argument;
}

int main(void) {
  pthread_t threads[8], hurries[4], other;
  for (int i = 0; i < KINDS; ++i) {
    make(&all[i], i % 3, i / 3 & 1, i / 6 & 1 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, i / 12);
    lock(&all[i]);
  }
  for (int i = 0; i < 4; ++i) {
    make(&wanted[i], i, i > 0, i < 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, 0);
  }
  make(&left_behind, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, 0);
  pthread_create(&other, NULL, end_with_it, &left_behind);
  pthread_join(other, NULL);
  need(pthread_mutex_lock(&left_behind) == EOWNERDEAD, "its owner has ended");
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, take, &wanted[i % 4]);
  for (int i = 0; i < 2; ++i) {
    make(&hurried[i], PTHREAD_MUTEX_NORMAL, i, i ? PTHREAD_PRIO_NONE : PTHREAD_PRIO_INHERIT, 0);
  }
  for (int i = 0; i < 4; ++i) pthread_create(&hurries[i], NULL, hurry, &hurried[i % 2]);
  for (int step = 0; step < STEPS; ++step) {
    for (int i = 0; i < KINDS; ++i) use(i);
    pthread_create(&other, NULL, try_all, NULL);
    pthread_join(other, NULL);
    step_done(step, (uint64_t)step);
    rest();
  }
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 4; ++i) pthread_join(hurries[i], NULL);
  need(pthread_mutex_consistent(&left_behind) == 0, "it becomes consistent");
  need(pthread_mutex_unlock(&left_behind) == 0, "and is unlocked");
  for (int i = 0; i < 4; ++i) printf("taken %u\n", taken[i]);
  return 0;
}
