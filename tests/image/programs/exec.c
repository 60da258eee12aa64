// Replaces itself again and again, by each function that there is, from the first thread and from
// others, and checks what a program finds after exec. Prints one line for each of its lives, and
// computes between them.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "program.h"

extern char** environ;
static int life;
static char* self;
static char number[16];
static char sum_text[32];

static void on_signal(int signal) { (void)signal; }

static void check_after_exec(void) {
  sigset_t mask;
  struct sigaction action;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  for (int signal = 1; signal < 65; ++signal) {
    if (signal == 32 || signal == 33) continue;
    need(sigismember(&mask, signal) == (signal == SIGUSR2 || signal == SIGRTMIN + 3), "mask");
  }
  sigpending(&mask);
  need(sigismember(&mask, SIGUSR2) && !sigismember(&mask, SIGUSR1), "pending");
  sigaction(SIGHUP, NULL, &action);
  need(action.sa_handler == SIG_IGN, "ignored signal");
  sigaction(SIGTERM, NULL, &action);
  need(action.sa_handler == SIG_DFL, "handled signal");
  need(fcntl(100, F_GETFD) < 0 && errno == EBADF, "closed on exec");
  need(fcntl(101, F_GETFD) == 0 && lseek(101, 0, SEEK_CUR) == 7, "kept descriptor");
  for (int fd = 3; fd < 100; ++fd) need(fcntl(fd, F_GETFD) < 0, "no other descriptor");
  need(getpid() == syscall(SYS_gettid), "first thread");
  need(getpid() == atoi(getenv("PID")), "process id");
  need(strcmp(getenv("LIFE"), number) == 0, "environment");
  struct itimerval timer;
  getitimer(ITIMER_REAL, &timer);
  need(timer.it_value.tv_sec > 1000, "interval timer");
  char name[16];
  prctl(PR_GET_NAME, name);
  printf("%d %s\n", life, name);
  fflush(stdout);
}

static void prepare_first(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  sigaddset(&mask, SIGRTMIN + 3);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  raise(SIGUSR2);
  signal(SIGHUP, SIG_IGN);
  const int fd = open("/proc/self/exe", O_RDONLY);
  dup2(fd, 101);
  close(fd);
  lseek(101, 7, SEEK_SET);
  struct itimerval timer = {{0, 0}, {100000, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  snprintf(number, sizeof number, "%d", getpid());
  setenv("PID", number, 1);
}

static void fail_first(void) {
  char* words[] = {self, NULL};
  need(execv("/nosuch", words) < 0 && errno == ENOENT, "no such program");
  need(execv("/etc", words) < 0 && errno == EACCES, "a folder");
  need(execv("/etc/passwd", words) < 0 && errno == EACCES, "not executable");
  need(execv((char*)8, words) < 0 && errno == EFAULT, "a path that is no memory");
  need(fexecve(open("/dev/null", O_RDONLY | O_CLOEXEC), words, environ) < 0, "a device");
  need(getenv("LIFE") == NULL || strcmp(getenv("LIFE"), "") != 0, "memory is as it was");
  closefrom(102);
  for (int fd = 3; fd < 100; ++fd) close(fd);
}

// Children are replaced by the kernel, whatever they share with this process.
static void run_children(void) {
  need(system("exit 7") >> 8 == 7, "system");
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 3", NULL);
    _exit(1);
  }
  int status = 0;
  need(waitpid(child, &status, 0) == child && status >> 8 == 3, "vfork and exec");
}

static void* replace(void* unused) {
  snprintf(number, sizeof number, "%d", life + 1);
  setenv("LIFE", number, 1);
  char* words[] = {"any name", number, sum_text, NULL};
  const int fd = open(self, O_RDONLY | O_CLOEXEC);
  switch (life % 6) {
    case 0: execv(self, words); break;
    case 1: execl(self, words[0], number, sum_text, NULL); break;
    case 2: fexecve(fd, words, environ); break;
    case 3: execveat(fd, "", words, environ, AT_EMPTY_PATH); break;
    case 4: execvp(self, words); break;
    default: execveat(AT_FDCWD, self, words, environ, 0); break;
  }
  perror("exec");
  _exit(1);
  return unused;
}

static void* spin(void* unused) {
  for (volatile int i = 0;; ++i) {
  }
  return unused;
}

int main(int count, char** words) {
  static char path[4096];
  need(readlink("/proc/self/map_files", path, 0) < 0, "readlink");
  self = realpath(getenv("PROGRAM"), path);
  life = count > 1 ? atoi(words[1]) : 0;
  uint64_t sum = count > 2 ? strtoull(words[2], NULL, 16) : 1;
  snprintf(number, sizeof number, "%d", life);
  if (life == 0) prepare_first();
  if (life > 0) check_after_exec();
  fail_first();
  if (life % 5 == 0) run_children();
  signal(SIGTERM, on_signal);
  sum = work(sum, 1500);
  if (life % 4 == 0) rest();
  step_done(life, sum);
  if (life == STEPS) return 0;
  snprintf(sum_text, sizeof sum_text, "%" PRIx64, sum);
  dup2(101, 100);
  fcntl(100, F_SETFD, FD_CLOEXEC);
  pthread_t thread;
  for (int i = 0; i < life % 3; ++i) pthread_create(&thread, NULL, spin, NULL);
  if (life % 2 == 0) replace(NULL);
  pthread_create(&thread, NULL, replace, NULL);
  pthread_join(thread, NULL);
  return 1;
}
