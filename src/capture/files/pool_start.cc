#include "capture/files/pool_start.h"

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#include <atomic>

#include "capture/files/capture.h"
#include "capture/files/collect.h"
#include "capture/files/export.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;
std::atomic<bool> starting;  // one thread at a time has the stacks
alignas(64) char outer_stack[stack_bytes];
alignas(64) char inner_stack[stack_bytes];

struct Plan {
  char* arguments[3];
  char** environment;
  int says;  // becomes stderr: it ends once the collector listens, or has ended
  volatile int started;
};

// Runs with the parent's memory, on a stack of its own: system calls only.
int become_collector(void* argument) {
  auto& plan = *static_cast<Plan*>(argument);
  if (plan.says == 2) raw::fcntl(2, F_SETFD, 0);
  if (plan.says != 2) raw::dup3(plan.says, 2, 0);
  raw::call(SYS_close_range, 3U, ~0U, 0U);
  const int null = raw::openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
  if (null != 0) raw::dup3(null, 0, 0);
  if (null != 1) raw::dup3(null, 1, 0);
  raw::call(SYS_chdir, "/");
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    unsigned long mask;
  } standard = {};
  for (int number = 1; number < 65; ++number) {
    raw::call(SYS_rt_sigaction, number, &standard, nullptr, sizeof(standard.mask));
  }
  const std::uint64_t none = 0;
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none));
  plan.started = 1;
  raw::call(SYS_execve, plan.arguments[0], plan.arguments, plan.environment);
  plan.started = 0;
  raw::call(SYS_exit, 127);
  return 127;
}

// Its end makes the collector a child of init: no wait() of the program ever sees it.
int leave_the_program(void* argument) {
  raw::call(SYS_setpgid, 0, 0);  // no session of its own, as in client/launch.cc
  next_clone(&become_collector, inner_stack + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD,
             argument);
  raw::call(SYS_exit, 0);
  return 0;
}

std::uint64_t block_signals() {
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  raw::call(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
  return before;
}

// The end of its words: it listens, or it has ended.
void wait_for_end_of_words(int from) {
  for (;;) {
    struct pollfd look = {from, POLLIN, 0};
    struct timespec limit = {silence_ms_max / 1000, 0};
    const long ready = raw::call(SYS_ppoll, &look, 1, &limit, nullptr, 0);
    if (ready == -EINTR) continue;
    char words[512];
    if (ready <= 0 || raw::read(from, words, sizeof(words)) <= 0) return;
  }
}

// Another thread starts it.
void wait_for_other_start() {
  struct timespec step = {0, 20'000'000};
  for (int waited_ms = 0; starting.load() && waited_ms < silence_ms_max; waited_ms += 20) {
    raw::call(SYS_ppoll, nullptr, 0, &step, nullptr, 0);
    step = {0, 20'000'000};  // the kernel writes what was left
  }
}

bool launch(const PoolSettings& settings) {
  int ends[2] = {-1, -1};
  if (raw::call(SYS_pipe2, ends, O_CLOEXEC) != 0) return false;
  Plan plan = {{const_cast<char*>(settings.program), const_cast<char*>(settings.socket), nullptr},
               settings.environment,
               ends[1],
               0};
  // A child without a signal at its end is one that wait() does not report.
  const std::uint64_t before = block_signals();
  const int child =
      next_clone(&leave_the_program, outer_stack + stack_bytes, CLONE_VM | CLONE_VFORK, &plan);
  while (child > 0 && raw::call(SYS_wait4, child, nullptr, __WALL, nullptr) == -EINTR) {
  }
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof(before));
  raw::close(ends[1]);
  if (plan.started != 0) wait_for_end_of_words(ends[0]);
  raw::close(ends[0]);
  return plan.started != 0;
}

}  // namespace

bool start_collector(const PoolSettings& settings) {
  static std::atomic<long> tried;
  if (settings.program[0] == '\0') return false;
  struct timespec now = {};
  raw::call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  const long last = tried.load();
  if (last != 0 && now.tv_sec - last < silence_ms_max / 1000) return false;
  if (starting.exchange(true)) {
    wait_for_other_start();
    return true;
  }
  const bool started = launch(settings);
  if (!started) tried.store(now.tv_sec);
  starting.store(false);
  return started;
}

}  // namespace backstay::files
