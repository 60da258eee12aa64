#include "capture/files/pool_start.h"

#include <sched.h>
#include <sys/wait.h>

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
  raw::set_blocked_signals(0);
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

// The end of its words: it listens, or it has ended.
void wait_for_end_of_words(int from) {
  for (;;) {
    const int ready = raw::wait_on(from, POLLIN, silence_ms_max);
    if (ready == -EINTR) continue;
    char words[512];
    if (ready <= 0 || raw::read(from, words, sizeof(words)) <= 0) return;
  }
}

// Another thread starts it.
void wait_for_other_start() {
  constexpr int step_ms = 20;
  for (int waited_ms = 0; starting.load() && waited_ms < silence_ms_max; waited_ms += step_ms) {
    raw::wait_on(-1, 0, step_ms);
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
  const std::uint64_t before = raw::block_signals();
  const int child =
      next_clone(&leave_the_program, outer_stack + stack_bytes, CLONE_VM | CLONE_VFORK, &plan);
  while (child > 0 && raw::call(SYS_wait4, child, nullptr, __WALL, nullptr) == -EINTR) {
  }
  raw::set_blocked_signals(before);
  raw::close(ends[1]);
  if (plan.started != 0) wait_for_end_of_words(ends[0]);
  raw::close(ends[0]);
  return plan.started != 0;
}

}  // namespace

bool start_collector(const PoolSettings& settings) {
  static std::atomic<long> tried;
  if (settings.program[0] == '\0') return false;
  const long now_s = raw::now_s();
  const long last_s = tried.load();
  if (last_s != 0 && now_s - last_s < silence_ms_max / 1000) return false;
  if (starting.exchange(true)) {
    wait_for_other_start();
    return true;
  }
  const bool started = launch(settings);
  if (!started) tried.store(now_s);
  starting.store(false);
  return started;
}

}  // namespace backstay::files
