// Signals that wait for the process and for a thread: each comes once, in their order, with what
// its sender has told. More of them are sent meanwhile.
#include <pthread.h>
#include <signal.h>

#include "program.h"

static sigset_t waits;
static pthread_barrier_t all_sent;

static void take(const char* whose) {
  siginfo_t info;
  const struct timespec now = {0, 0};
  while (sigtimedwait(&waits, &info, &now) > 0) {
    printf("%s: signal %d code %d value %d, its sender is %s\n", whose, info.si_signo, info.si_code,
           info.si_code == SI_QUEUE ? info.si_value.sival_int : 0,
           info.si_pid == getpid() ? "itself" : "another");
  }
}

// Its own come before those of the process, so it takes them last.
static void* hear(void* argument) {
  pthread_barrier_wait(&all_sent);
  pthread_barrier_wait(&all_sent);
  take("thread");
  return argument;
}

static void send(pthread_t thread, int value) {
  const union sigval told = {.sival_int = value};
  need(sigqueue(getpid(), SIGRTMIN + 1 + value % 2, told) == 0, "sigqueue");
  need(pthread_sigqueue(thread, SIGRTMIN + 1, told) == 0, "pthread_sigqueue");
  need(pthread_sigqueue(pthread_self(), SIGRTMIN + 2, told) == 0, "pthread_sigqueue");
}

int main(void) {
  pthread_t thread;
  const int numbers[] = {SIGUSR1, SIGUSR2, SIGCHLD, SIGRTMIN + 1, SIGRTMIN + 2};
  sigemptyset(&waits);
  for (int i = 0; i < 5; ++i) sigaddset(&waits, numbers[i]);
  pthread_sigmask(SIG_BLOCK, &waits, NULL);
  pthread_barrier_init(&all_sent, NULL, 2);
  pthread_create(&thread, NULL, hear, NULL);
  kill(getpid(), SIGUSR1);
  pthread_kill(thread, SIGUSR2);
  for (int i = 0; i < 10; ++i) send(thread, 100 + i);
  for (int step = 0; step < STEPS; ++step) {
    send(thread, step);
    step_done(step, (uint64_t)step);
    rest();
  }
  pthread_barrier_wait(&all_sent);
  take("process");
  pthread_barrier_wait(&all_sent);
  pthread_join(thread, NULL);
  return 0;
}
