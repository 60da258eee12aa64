// POSIX timers of every kind, with gaps between their numbers: each goes on, and tells the same.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "program.h"

enum { FIRST, SECOND, OF_PROCESS, OF_THREAD, TO_THREAD, COUNTED };
static _Atomic unsigned fired[COUNTED], called;
static _Atomic int ready;
static pthread_t other_thread;
static const struct itimerspec often = {{0, 3000000}, {0, 3000000}}, far = {{0, 0}, {5000, 0}};

static void on_timer(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  const int which = info->si_value.sival_int;
  need(info->si_code == SI_TIMER && which >= 0 && which < COUNTED, "what a timer's signal tells");
  const int right = which != TO_THREAD || pthread_equal(pthread_self(), other_thread);
  need(right, "the thread of SIGEV_THREAD_ID");
  fired[which]++;
}
static void on_call(union sigval value) {
  need(value.sival_int == 7, "the value of SIGEV_THREAD");
  called++;
}

static timer_t start(clockid_t clock, int notify, int number, int value,
                     const struct itimerspec* when) {
  struct sigevent event = {0};
  timer_t timer;
  event.sigev_notify = notify;
  event.sigev_signo = number;
  event.sigev_value.sival_int = value;
  event.sigev_notify_function = on_call;
  if (notify == SIGEV_THREAD_ID) event._sigev_un._tid = gettid();
  need(timer_create(clock, &event, &timer) == 0, "timer_create");
  need(timer_settime(timer, 0, when, NULL) == 0, "timer_settime");
  return timer;
}

// Uses time of the processor, and hears no signal but that of its own timer.
static void* spin(void* argument) {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGRTMIN + 2);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  // At once: a restart gives this thread another id, which its clock has inside.
  start(CLOCK_MONOTONIC, SIGEV_THREAD_ID, SIGRTMIN + 2, TO_THREAD, &often);
  clockid_t clock;
  pthread_getcpuclockid(pthread_self(), &clock);
  start(clock, SIGEV_SIGNAL, SIGRTMIN + 1, OF_THREAD, &often);
  ready = 1;
  for (uint64_t sum = 1;;) sum = work(sum, 1);
  return argument;
}

static void wait_for(_Atomic unsigned* counter, const char* what) {
  const time_t end = time(NULL) + 20;
  for (const unsigned before = *counter; *counter == before; work(1, 1)) {
    need(time(NULL) < end, what);
  }
}

static uint64_t left_of(timer_t timer) {
  struct itimerspec left;
  need(timer_gettime(timer, &left) == 0, "timer_gettime");
  return (uint64_t)left.it_value.tv_sec;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigset_t waits;
  for (int i = 1; i <= 2; ++i) need(sigaction(SIGRTMIN + i, &action, NULL) == 0, "sigaction");
  sigemptyset(&waits);
  sigaddset(&waits, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &waits, NULL);
  need(pthread_create(&other_thread, NULL, spin, NULL) == 0, "pthread_create");
  while (!ready) continue;
  const int number = SIGRTMIN + 1;
  const timer_t none = start(CLOCK_REALTIME, SIGEV_NONE, 0, 0, &far);
  const timer_t gone = start(CLOCK_MONOTONIC, SIGEV_SIGNAL, number, -1, &far);
  start(CLOCK_MONOTONIC, SIGEV_SIGNAL, number, FIRST, &often);
  start(CLOCK_REALTIME, SIGEV_SIGNAL, number, SECOND, &often);
  start(CLOCK_PROCESS_CPUTIME_ID, SIGEV_SIGNAL, number, OF_PROCESS, &often);
  timer_delete(gone);
  start(CLOCK_BOOTTIME, SIGEV_THREAD, 0, 7, &often);
  const struct itimerspec once = {{0, 0}, {0, 1}};
  start(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 3, 43, &once);
  for (int step = 0; step < STEPS; ++step) {
    for (int i = 0; i < COUNTED; ++i) wait_for(&fired[i], "a timer's signal");
    wait_for(&called, "the function of a timer");
    const timer_t more = start(CLOCK_MONOTONIC, SIGEV_THREAD, 0, 7, &far);
    need(left_of(more) > 4900 && left_of(none) > 4900 && left_of(none) < 5000, "what is left");
    need(timer_delete(more) == 0, "timer_delete");
    step_done(step, (uint64_t)step);
  }
  siginfo_t info;
  const struct timespec now = {0, 0};
  need(sigtimedwait(&waits, &info, &now) > 0 && info.si_value.sival_int == 43, "one that waited");
  need(sigtimedwait(&waits, &info, &now) < 0 && errno == EAGAIN, "it comes once");
  return 0;
}
