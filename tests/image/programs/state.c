// Sets what the kernel keeps of a process, a thread and a descriptor, and tells it, one probe each:
//   state list            names of the probes
//   state FILE NAME...    sets these in this order, tells all, waits for FILE, and tells all again
// A line is `NAME VALUE`, or `NAME -` where this machine does not let it be set.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "program.h"

typedef struct {
  const char* name;
  int (*set)(void);  // false: not here
  void (*tell)(char* to);
} Probe;

// Each has two descriptors and a path of its own.
#define HERE(id)                                    \
  int* const fd __attribute__((unused)) = fds_##id; \
  const char* const path __attribute__((unused)) = #id;
#define PROBE(id, SET, TELL)                           \
  static int fds_##id[2];                              \
  static int set_##id(void) { HERE(id) return (SET); } \
  static void tell_##id(char* to) { HERE(id) TELL; }   \
  static const Probe probe_##id                        \
      __attribute__((used, section("probes"), aligned(8))) = {#id, set_##id, tell_##id};
#define NUMBER(id, SET, TELL) PROBE(id, (SET), sprintf(to, "%lld", (long long)(TELL)))
extern const Probe __start_probes[], __stop_probes[];

// The rest of the line of a file that begins with `name`.
static void line_of(const char* path, const char* name, char* to) {
  FILE* file = fopen(path, "r");
  char line[2048];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) sprintf(to, "%s", line + strlen(name));
  }
  if (file != NULL) fclose(file);
}
static int put(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}
static long call(long number, long a, long b, long c, long d) {
  return syscall(number, a, b, c, d, 0);
}
static const char* thread_status(void) {
  static char path[64];
  sprintf(path, "/proc/self/task/%ld/status", syscall(SYS_gettid));
  return path;
}

// --- memory
static char* pages;
static char* new_pages(int flags) {
  return pages = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
                      -1, 0);
}
static int is_kept_from_children(char* area) {  // by what /proc/self/smaps says of it
  char name[32], line[512];
  int inside = 0, found = 0;
  sprintf(name, "%lx-", (long)area);
  FILE* file = fopen("/proc/self/smaps", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strchr(line, '-') != NULL && strchr(line, '-') < strchr(line, ' '))
      inside = strncmp(line, name, strlen(name)) == 0;
    if (inside && strncmp(line, "VmFlags", 7) == 0) found = strstr(line, " dc") != NULL;
  }
  if (file != NULL) fclose(file);
  return found;
}
static char *apart, *advised;
static int grow(char* room) {  // room to grow into, then some of it used
  munmap(room, 4 << 20);
  apart = mmap(room + (4 << 20) - 0x18000, 0x8000, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
  for (long at = 0x1000; apart != MAP_FAILED && at <= 50 * 0x1000; at += 0x1000) apart[-at] = 1;
  return apart != MAP_FAILED;
}
static unsigned long nodes = 1;
static int policy;
PROBE(arguments, 1, line_of("/proc/self/cmdline", "", to))
NUMBER(locked_memory, mlock(new_pages(0), 4096) == 0,
       (line_of("/proc/self/status", "VmLck:", to), atol(to)))
NUMBER(madvise, madvise(advised = new_pages(0), 1 << 16, MADV_DONTFORK) == 0,
       is_kept_from_children(advised))
NUMBER(memory_policy, call(SYS_set_mempolicy, 2, (long)&nodes, 64, 0) == 0,
       (call(SYS_get_mempolicy, (long)&policy, 0, 0, 0), policy))
NUMBER(huge_pages, prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0,
       prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0))
PROBE(coredump_filter, put("/proc/self/coredump_filter", "0x11"),
      line_of("/proc/self/coredump_filter", "", to))
NUMBER(growsdown, grow(new_pages(0)), (apart[-51 * 0x1000] = 1))
NUMBER(asynchronous_io, call(SYS_io_setup, 8, (long)&(long){0}, 0, 0) == 0, 0)
NUMBER(shm_sysv, shmat(shmget(IPC_PRIVATE, 4096, 0600), NULL, 0) != (void*)-1, 0)

// --- the process
static struct rlimit rlimit;
static struct rusage usage;
static int flag;
static sigset_t mask;
static struct itimerval interval = {{100, 0}, {1000, 0}};
static int burn(void) {
  while (getrusage(RUSAGE_SELF, &usage),
         usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 < 300)
    work(1, 1);
  return 1;
}
static int limit(int which, rlim_t soft, rlim_t hard) {
  return setrlimit(which, &(struct rlimit){soft, hard}) == 0;
}
#define LIMIT(id, which, soft, hard)  \
  PROBE(id, limit(which, soft, hard), \
        (getrlimit(which, &rlimit),   \
         sprintf(to, "%lld %lld", (long long)rlimit.rlim_cur, (long long)rlimit.rlim_max)))
NUMBER(process_id, 1, getpid())
NUMBER(processor_time, burn(),
       (getrusage(RUSAGE_SELF, &usage),
        usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 >= 300))
NUMBER(umask, (umask(027), 1), umask(027))
PROBE(working_directory, mkdir(path, 0700) == 0 && chdir(path) == 0, (void)!getcwd(to, 256))
PROBE(command_name, prctl(PR_SET_NAME, "renamed") == 0, prctl(PR_GET_NAME, to))
LIMIT(limit_files, RLIMIT_NOFILE, 60, 64)
LIMIT(limit_core, RLIMIT_CORE, 0, 0)
LIMIT(limit_processes, RLIMIT_NPROC, 1, 1)
LIMIT(limit_addresses, RLIMIT_AS, 1L << 45, 1L << 46)
PROBE(oom_score_adj, put("/proc/self/oom_score_adj", "321"),
      line_of("/proc/self/oom_score_adj", "", to))
NUMBER(subreaper, prctl(PR_SET_CHILD_SUBREAPER, 1) == 0,
       (prctl(PR_GET_CHILD_SUBREAPER, &flag), flag))
NUMBER(interval_timer, setitimer(ITIMER_REAL, &interval, NULL) == 0,
       (getitimer(ITIMER_REAL, &interval), interval.it_value.tv_sec > 900))
NUMBER(ignored_signal, signal(SIGHUP, SIG_IGN) != SIG_ERR, ({
         struct sigaction now;
         sigaction(SIGHUP, NULL, &now);
         now.sa_handler == SIG_IGN;
       }))
NUMBER(child, ({
         const pid_t pid = fork();
         if (pid == 0) {
           prctl(PR_SET_PDEATHSIG, SIGKILL);
           pause();
         }
         pid > 0;
       }),
       0)
NUMBER(merged_memory, prctl(67, 1, 0, 0, 0) == 0, prctl(68, 0, 0, 0, 0))
NUMBER(write_or_execute, prctl(65, 1, 0, 0, 0) == 0, prctl(66, 0, 0, 0, 0))
NUMBER(memory_failure, prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0) == 0,
       prctl(PR_MCE_KILL_GET, 0, 0, 0, 0))
NUMBER(io_flusher, prctl(57, 1, 0, 0, 0) == 0, prctl(58, 0, 0, 0, 0))
NUMBER(barrier, syscall(SYS_membarrier, 16, 0, 0) == 0, syscall(SYS_membarrier, 8, 0, 0))
NUMBER(speculation,
       prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0) == 0,
       prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0))
NUMBER(time_stamp_counter, prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0, (prctl(PR_GET_TSC, &flag), flag))
PROBE(host_name, unshare(CLONE_NEWUTS) == 0 && sethostname("elsewhere", 9) == 0,
      gethostname(to, 64))

NUMBER(root_directory, mkdir(path, 0700) == 0 && chroot(path) == 0, 0)
NUMBER(waiting_sigterm,
       (sigemptyset(&mask), sigaddset(&mask, SIGTERM), sigprocmask(SIG_BLOCK, &mask, NULL) == 0) &&
           kill(getpid(), SIGTERM) == 0,
       (sigpending(&mask), sigismember(&mask, SIGTERM)))
NUMBER(semaphore_undo,
       (*fd = semget(IPC_PRIVATE, 1, 0666)) >= 0 &&
           semop(*fd, &(struct sembuf){0, 3, SEM_UNDO}, 1) == 0,
       semctl(*fd, 0, GETVAL))

// --- threads
static cpu_set_t set;
static struct sched_param param;
static timer_t timer;
static struct itimerspec spec = {{100, 0}, {1000, 0}};
static pthread_mutex_t mutex;
static stack_t stack = {.ss_size = 1 << 16};
static int processors(int last) {
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) return 0;
  int one = last ? CPU_SETSIZE - 1 : 0;
  while (!CPU_ISSET(one, &set)) one += last ? -1 : 1;
  CPU_ZERO(&set);
  CPU_SET(one, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}
static int queue(int value) {
  return sigqueue(getpid(), SIGRTMIN + 5, (union sigval){.sival_int = value}) == 0;
}
static void queued(char* to) {
  siginfo_t info;
  while (sigtimedwait(&mask, &info, &(struct timespec){0, 0}) > 0)
    to += sprintf(to, "%d ", info.si_value.sival_int);
  queue(5), queue(6);  // for the next one who asks
}
static void nothing(union sigval value) { (void)value; }
static int two_timers(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = nothing};
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
         timer_settime(timer, 0, &spec, NULL) == 0 &&
         timer_create(CLOCK_MONOTONIC, &event, &(timer_t){0}) == 0;
}
static int mutex_of(int inherits) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  inherits ? pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT)
           : pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  return pthread_mutex_init(&mutex, &kind) == 0 && pthread_mutex_lock(&mutex) == 0;
}
NUMBER(affinity, processors(1),
       (sched_getaffinity(0, sizeof set, &set), CPU_COUNT(&set) * 100 + CPU_ISSET(0, &set)))
NUMBER(thread_affinity, processors(0),
       (sched_getaffinity(0, sizeof set, &set), CPU_COUNT(&set) * 100 + CPU_ISSET(0, &set)))
NUMBER(policy, sched_setscheduler(0, SCHED_RR, &(struct sched_param){3}) == 0,
       (sched_getparam(0, &param), sched_getscheduler(0) * 100 + param.sched_priority))
NUMBER(thread_policy, sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}) == 0,
       sched_getscheduler(0))
NUMBER(nice, setpriority(PRIO_PROCESS, 0, 15) == 0, getpriority(PRIO_PROCESS, 0))
NUMBER(thread_nice, setpriority(PRIO_PROCESS, 0, 17) == 0, getpriority(PRIO_PROCESS, 0))
NUMBER(io_priority, call(SYS_ioprio_set, 1, 0, 2 << 13 | 6, 0) == 0,
       call(SYS_ioprio_get, 1, 0, 0, 0))
NUMBER(thread_timer_slack, prctl(PR_SET_TIMERSLACK, 90000) == 0, prctl(PR_GET_TIMERSLACK))
PROBE(thread_name, prctl(PR_SET_NAME, "worker") == 0, prctl(PR_GET_NAME, to))
NUMBER(signal_mask,
       (sigemptyset(&mask), sigaddset(&mask, SIGRTMIN + 5),
        sigprocmask(SIG_BLOCK, &mask, NULL) == 0),
       (sigprocmask(SIG_BLOCK, NULL, &mask), sigismember(&mask, SIGRTMIN + 5)))
PROBE(queued_signals,
      (sigemptyset(&mask), sigaddset(&mask, SIGRTMIN + 5),
       sigprocmask(SIG_BLOCK, &mask, NULL) == 0 && queue(5) && queue(6)),
      queued(to))
NUMBER(alternate_stack, (stack.ss_sp = malloc(1 << 16), sigaltstack(&stack, NULL) == 0),
       (sigaltstack(NULL, &stack), (long)stack.ss_sp))
NUMBER(posix_timer, two_timers(), timer_gettime(timer, &spec) == 0 && spec.it_value.tv_sec > 900)
NUMBER(robust_mutex, mutex_of(0),
       (flag = pthread_mutex_unlock(&mutex), pthread_mutex_trylock(&mutex), flag))
NUMBER(inheriting_mutex, mutex_of(1),
       (flag = pthread_mutex_unlock(&mutex), pthread_mutex_trylock(&mutex), flag))

// --- descriptors
static int opened(const char* path, int* fd, int flags) {
  return (*fd = open(path, O_CREAT | O_RDWR | flags, 0600)) >= 0;
}
static void packets(const int* fd, char* to) {
  const long size = read(fd[0], to, 100);
  to[size > 0 ? size : 0] = 0;
  while (read(fd[0], (char[100]){0}, 100) > 0) {
  }
  if (write(fd[1], "ab", 2) + write(fd[1], "cd", 2) != 4) *to = 0;
}
static int locked_by_other(int other) {
  const int locked = flock(other, LOCK_EX | LOCK_NB) != 0;
  if (!locked) flock(other, LOCK_UN);
  return locked;
}
NUMBER(offset, opened(path, fd, 0) && pwrite(*fd, "abc", 3, 0) == 3 && lseek(*fd, 2, SEEK_SET) == 2,
       lseek(*fd, 0, SEEK_CUR))
NUMBER(status_flags, opened(path, fd, O_APPEND) && fcntl(*fd, F_SETFL, O_APPEND | O_NONBLOCK) == 0,
       fcntl(*fd, F_GETFL) & (O_APPEND | O_NONBLOCK))
NUMBER(close_on_exec, opened(path, fd, O_CLOEXEC), fcntl(*fd, F_GETFD))
NUMBER(file_lock, opened(path, fd, 0) && opened(path, fd + 1, 0) && flock(*fd, LOCK_EX) == 0,
       locked_by_other(fd[1]))
NUMBER(lease, opened(path, fd, 0) && fcntl(*fd, F_SETLEASE, F_WRLCK) == 0, fcntl(*fd, F_GETLEASE))
NUMBER(owner, pipe(fd) == 0 && fcntl(*fd, F_SETOWN, getpid()) == 0,
       fcntl(*fd, F_GETOWN) == getpid())
NUMBER(owner_signal,
       pipe(fd) == 0 && fcntl(*fd, F_SETOWN, getpid()) == 0 && fcntl(*fd, F_SETSIG, SIGUSR1) == 0,
       fcntl(*fd, F_GETSIG))
NUMBER(pipe_size, pipe(fd) == 0 && fcntl(*fd, F_SETPIPE_SZ, 1 << 18) > 0, fcntl(*fd, F_GETPIPE_SZ))
PROBE(packet_pipe, pipe2(fd, O_DIRECT | O_NONBLOCK) == 0 && (packets(fd, (char[128]){0}), 1),
      packets(fd, to))
NUMBER(seals,
       (*fd = memfd_create("m", MFD_ALLOW_SEALING)) >= 0 && ftruncate(*fd, 99) == 0 &&
           fcntl(*fd, F_ADD_SEALS, F_SEAL_GROW) == 0,
       fcntl(*fd, F_GET_SEALS))
NUMBER(message_queue, mq_open("/backstay-state", O_CREAT | O_RDWR, 0600, NULL) >= 0, 0)
NUMBER(inotify, inotify_init() >= 0, 0)
NUMBER(userfaultfd, syscall(SYS_userfaultfd, 1) >= 0, 0)
NUMBER(io_uring, syscall(SYS_io_uring_setup, 2, (char[256]){0}) >= 0, 0)
NUMBER(pidfd, syscall(SYS_pidfd_open, getpid(), 0) >= 0, 0)
NUMBER(socket, socket(AF_INET, SOCK_STREAM, 0) >= 0, 0)

// --- rights: each leaves enough for those behind it
static struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct caps[2];
static int capabilities(uint32_t permitted, uint32_t effective, uint32_t inheritable) {
  syscall(SYS_capget, &header, caps);
  const uint32_t more = permitted == ~0U ? caps[1].permitted : 0;
  caps[0].permitted &= permitted, caps[0].effective = caps[0].permitted & effective;
  caps[0].inheritable = inheritable, caps[1].permitted = caps[1].effective = more;
  return caps[0].effective != 0 && syscall(SYS_capset, &header, caps) == 0;
}
#define STATUS(id, SET, NAME) PROBE(id, SET, line_of(thread_status(), NAME ":", to))
STATUS(supplementary_groups, setgroups(2, (gid_t[]){77, 88}) == 0, "Groups")
NUMBER(securebits, prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS) == 0,
       prctl(PR_GET_SECUREBITS))
STATUS(inheritable_capabilities, capabilities(~0U, ~0U, 1 << CAP_KILL), "CapInh")
STATUS(ambient_capabilities, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) == 0,
       "CapAmb")
STATUS(bounding_capabilities, prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT) == 0, "CapBnd")
STATUS(group_ids, call(SYS_setresgid, 65533, 65534, 65532, 0) == 0, "Gid")
STATUS(user_ids, call(SYS_setresuid, 65533, 65534, 65532, 0) == 0, "Uid")
STATUS(thread_ids, prctl(PR_SET_KEEPCAPS, 1) == 0 && call(SYS_setresuid, 1001, 1002, 1003, 0) == 0,
       "Uid")
STATUS(thread_capabilities, capabilities(1 << CAP_CHOWN, ~0U, 0), "CapEff")
STATUS(permitted_capabilities, capabilities(1 << CAP_KILL | 1 << CAP_FOWNER, ~0U, 1 << CAP_KILL),
       "CapPrm")
STATUS(effective_capabilities, capabilities(~0U, 1 << CAP_KILL, 1 << CAP_KILL), "CapEff")
STATUS(no_new_privs, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "NoNewPrivs")
NUMBER(death_signal, prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0, ({
         int signal = 0;
         prctl(PR_GET_PDEATHSIG, &signal);
         signal;
       }))
NUMBER(dumpable, prctl(PR_SET_DUMPABLE, 0) == 0, prctl(PR_GET_DUMPABLE))

NUMBER(landlock,
       (*fd = (int)call(444, (long)&(uint64_t){1 << 3}, 8, 0, 0)) >= 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && call(446, *fd, 0, 0, 0) == 0 &&
           close(*fd) == 0,
       open("/etc", O_RDONLY) < 0)
NUMBER(session_keyring, call(SYS_keyctl, 1, 0, 0, 0) > 0, call(SYS_keyctl, 0, -3, 0, 0))

// --- all of them
static const Probe* asked_probe;
static char* asked_to;
static int answer;
static sem_t asked, done;

static int ask(const Probe* probe, char* to) {
  if (to == NULL) return probe->set();
  probe->tell(to);
  return 1;
}
static void* worker(void* argument) {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, NULL);
  for (;;) {
    while (sem_wait(&asked) != 0) {
    }
    answer = ask(asked_probe, asked_to);
    sem_post(&done);
  }
  return argument;
}
static int ask_where_it_is(const Probe* probe, char* to) {
  if (strncmp(probe->name, "thread_", 7) != 0) return ask(probe, to);
  asked_probe = probe, asked_to = to;
  sem_post(&asked);
  while (sem_wait(&done) != 0) {
  }
  return answer;
}
static void tell_all(char** names, const int* there) {
  for (int i = 0; names[i] != NULL; ++i) {
    char text[4096] = "-";
    for (const Probe* probe = __start_probes; probe < __stop_probes; ++probe) {
      if (there[i] && strcmp(probe->name, names[i]) == 0) ask_where_it_is(probe, text);
    }
    printf("%s %.*s\n", names[i], (int)strcspn(text, "\n"), text);
  }
  printf("end\n");
  fflush(stdout);
}

int main(int count, char** words) {
  static int there[128];
  pthread_t thread;
  if (strcmp(words[1], "list") == 0) {
    for (const Probe* probe = __start_probes; probe < __stop_probes; ++probe) puts(probe->name);
    return 0;
  }
  need(pthread_create(&thread, NULL, worker, NULL) == 0, "pthread_create");
  for (int i = 2; i < count; ++i) {
    for (const Probe* probe = __start_probes; probe < __stop_probes; ++probe) {
      if (strcmp(probe->name, words[i]) == 0) there[i - 2] = ask_where_it_is(probe, NULL);
    }
  }
  tell_all(words + 2, there);
  while (access(words[1], F_OK) != 0) rest();
  tell_all(words + 2, there);
  return 0;
}
