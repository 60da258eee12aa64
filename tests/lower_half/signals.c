// Handlers of the program run while it is in calls of MPI, and find what belongs to the program:
// its thread-local storage, errno, itself. Each rank prints "right" or where it differs. Usage:
// signals MILLISECONDS [FILE]: with FILE it waits outside of MPI until there is such a file.
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int rank, ranks, failed;
#define CHECK(what) check((what), #what, __LINE__)
static void check(int good, const char* what, int line) {
  if (good) return;
  ++failed;
  printf("rank %d: wrong in line %d: %s\n", rank, line, what);
}

static __thread long mark;
static pthread_t self;
static volatile long ticks, wrong, inside, depth, deepest;
static volatile int in_mpi;

static void tick(int number, siginfo_t* info, void* context) {
  if (gettid() != getpid()) return;  // it came to a thread of MPI's own
  const int before = errno;
  ++ticks;
  inside += in_mpi;
  const int own = mark == 4711 && pthread_equal(pthread_self(), self);
  const ucontext_t* frame = context;
  if (!own || number != SIGPROF || info->si_signo != SIGPROF) ++wrong;
  if (frame->uc_mcontext.gregs[REG_RIP] == 0) ++wrong;
  close(-1);
  if (errno != EBADF) ++wrong;
  errno = before;
}

static void set(int number, void* handler, int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaddset(&action.sa_mask, SIGUSR2);
  CHECK(sigaction(number, &action, NULL) == 0);
}

// What was set is what is told.
static void read_back(void) {
  struct sigaction got;
  set(SIGUSR1, tick, SA_SIGINFO | SA_RESTART);
  CHECK(sigaction(SIGUSR1, NULL, &got) == 0);
  CHECK((void*)got.sa_sigaction == (void*)tick);
  CHECK((got.sa_flags & (SA_SIGINFO | SA_RESTART)) == (SA_SIGINFO | SA_RESTART));
  CHECK(sigismember(&got.sa_mask, SIGUSR2) == 1 && sigismember(&got.sa_mask, SIGTERM) == 0);
  CHECK(signal(SIGUSR1, SIG_IGN) == (void*)tick);
  CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
  CHECK(signal(SIGKILL, SIG_IGN) == SIG_ERR && errno == EINVAL);
}

static volatile int calls;
static void count(int number) {
  (void)number;
  ++calls;
}
static void nest(int number) {
  ++depth;
  if (depth > deepest) deepest = depth;
  if (depth < 3) raise(number);
  --depth;
}
static char other_stack[64 << 10];
static volatile int on_other;
static void look_at_stack(int number) {
  char here;
  (void)number;
  on_other = &here >= other_stack && &here < other_stack + sizeof other_stack;
}
static sigjmp_buf out;
static void jump(int number) { siglongjmp(out, number); }

static void flags(void) {
  struct sigaction got;
  set(SIGUSR1, count, SA_RESETHAND);
  raise(SIGUSR1);
  sigaction(SIGUSR1, NULL, &got);
  CHECK(calls == 1 && got.sa_handler == SIG_DFL);
  set(SIGUSR1, nest, SA_NODEFER);
  raise(SIGUSR1);
  CHECK(deepest == 3 && depth == 0);
  const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
  sigaltstack(&stack, NULL);
  set(SIGUSR1, look_at_stack, SA_ONSTACK);
  raise(SIGUSR1);
  CHECK(on_other);
  set(SIGUSR1, jump, 0);
  volatile int turns = 0;
  if (sigsetjmp(out, 1) == 0) raise(SIGUSR1);
  if (++turns < 3) raise(SIGUSR1);
  CHECK(turns == 3 && mark == 4711);
  signal(SIGUSR1, SIG_DFL);
}

// A child has the handlers; one that is another program has those that are ignored.
static void children(void) {
  set(SIGUSR1, count, 0);
  calls = 0;
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGUSR1);
    struct sigaction got;
    sigaction(SIGUSR1, NULL, &got);
    const int good = calls == 1 && got.sa_handler == count;
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    _exit(good && signal(SIGUSR1, count) == SIG_IGN && raise(SIGUSR1) == 0 && calls == 2 ? 7 : 8);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK(system("kill -USR1 $$") == SIGUSR1);
  raise(SIGUSR1);
  CHECK(calls == 1);
  signal(SIGUSR1, SIG_DFL);
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void exchange(double until_ms) {
  static char from[1 << 16], to[1 << 16];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  int stop = 0;
  for (int i = 0; !stop; ++i) {
    const int bytes = i % 16 == 0 ? (int)sizeof from : 8;
    memset(from, rank + i, 8);
    in_mpi = 1;
    MPI_Sendrecv(from, bytes, MPI_CHAR, right, 1, to, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    in_mpi = 0;
    if (to[3] != (char)(left + i)) ++failed;
    if (i % 64 != 0) continue;
    int mine = now_ms() > until_ms;
    in_mpi = 1;
    MPI_Allreduce(&mine, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    in_mpi = 0;
  }
}

int main(int argc, char** argv) {
  const double length_ms = argc > 1 ? atof(argv[1]) : 200;
  mark = 4711;
  self = pthread_self();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  read_back();
  flags();
  children();
  set(SIGPROF, tick, SA_SIGINFO | SA_RESTART);
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &often, NULL);
  exchange(now_ms() + length_ms);
  struct stat status;
  if (argc > 2) {
    char name[256];
    snprintf(name, sizeof name, "%s.%d", argv[2], rank);
    fclose(fopen(name, "w"));
    while (stat(argv[2], &status) != 0) usleep(1000);
    ticks = inside = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(now_ms() + length_ms);
  }
  setitimer(ITIMER_PROF, &never, NULL);
  CHECK(ticks > 0 && inside > 0 && wrong == 0);
  if (wrong) printf("rank %d: %ld of %ld wrong\n", rank, wrong, ticks);
  for (int turn = 0; turn < ranks; ++turn) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == rank && failed == 0) printf("right\n");
    fflush(stdout);
  }
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
