// Handlers, masks, what is pending, an alternate stack, interval timers and POSIX timers; no call
// may be seen to be interrupted.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/time.h>

#include "program.h"

static volatile sig_atomic_t ticks, timers, users, on_alternate;
static char alternate[65536];

static void on_alarm(int number) {
  (void)number;
  ticks++;
}
static void on_user(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  char here;
  users += info->si_signo == SIGUSR1;
  on_alternate += &here >= alternate && &here < alternate + sizeof alternate;
}
static void on_timer(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  timers += info->si_value.sival_int == 42;
}

static void handle(int number, void (*with)(int, siginfo_t*, void*), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = with;
  action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
  need(sigaction(number, &action, NULL) == 0, "sigaction");
}

// Sleeps in a thread that blocks everything, so that no signal of the program's own ends its calls.
static void* sleeper(void* argument) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  for (int i = 0; i < STEPS; ++i) {
    struct timeval time = {0, 4000};
    struct timespec deadline;
    need(poll(NULL, 0, 4) == 0, "poll was interrupted");
    need(select(0, NULL, NULL, NULL, &time) == 0, "select was interrupted");
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    need(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == 0, "clock_nanosleep");
    rest();
  }
  return argument;
}

static timer_t start_timers(void) {
  const struct itimerval every = {{0, 5000}, {0, 5000}};
  struct sigevent event = {0};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN + 3;
  event.sigev_value.sival_int = 42;
  timer_t timer;
  const struct itimerspec often = {{0, 7000000}, {0, 7000000}};
  need(setitimer(ITIMER_REAL, &every, NULL) == 0, "setitimer");
  need(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  need(timer_settime(timer, 0, &often, NULL) == 0, "timer_settime");
  return timer;
}

int main(void) {
  const stack_t stack = {alternate, 0, sizeof alternate};
  sigset_t blocked, now;
  sigaltstack(&stack, NULL);
  signal(SIGALRM, on_alarm);
  signal(SIGPIPE, SIG_IGN);
  handle(SIGUSR1, on_user, SA_ONSTACK);
  handle(SIGRTMIN + 3, on_timer, 0);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  raise(SIGUSR1);           // waits for this thread
  kill(getpid(), SIGUSR2);  // waits for the process
  pthread_t thread;
  pthread_create(&thread, NULL, sleeper, NULL);
  const timer_t timer = start_timers();
  uint64_t sum = 1;
  for (int step = 0; step < STEPS; ++step) {
    const sig_atomic_t before = ticks, before_timers = timers;
    while (ticks == before || timers == before_timers) continue;  // both go on
    sum = work(sum, 20);
    step_done(step, sum);
    while (usleep(3000) != 0) continue;
  }
  pthread_join(thread, NULL);
  const struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &none, NULL);
  timer_delete(timer);
  sigpending(&now);
  printf("pending %d %d, handled %d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2),
         (int)users);
  sigdelset(&blocked, SIGUSR2);
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  struct sigaction ignored;
  sigaction(SIGPIPE, NULL, &ignored);
  printf("handled %d, on its stack %d, ignored %d\n", (int)users, (int)on_alternate,
         ignored.sa_handler == SIG_IGN);
  return 0;
}
