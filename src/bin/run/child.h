// The program under `backstay run`: started in a process group of its own, watched, signalled, and
// cleaned up after.
//
// One thread. SIGCHLD and the signals that are forwarded stay blocked in this process from
// construction on and are taken by wait(); the child gets the signal mask that was there before,
// and ignores SIGPIPE where this process was started so. The process becomes a "subreaper":
// processes that the launcher leaves behind become our children and can be ended before the next
// try.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::bin {

struct ChildEnd {
  int exit_code = 0;  // 128 + signal for a program that a signal ended
  int signal = 0;
  bool childless = false;  // it has waited for no child of its own
};

class Child {
 public:
  Child();
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // A terminal as standard input is replaced by /dev/null: a background group may not read from it.
  // Errors: not_found, permission (the program cannot be executed).
  Status start(const std::vector<std::string>& words);
  // Waits at most `timeout_s` (negative: no limit) for a signal of ours, for the end of the child,
  // or for one of `others`. 0: the time is over, or one of them is ready; SIGCHLD: the child has
  // ended, see end().
  int wait(double timeout_s, std::vector<pollfd> others = {});
  // A signal of ours that came outside of wait(); 0: none, or no more.
  int pending();
  const std::optional<ChildEnd>& end() const { return end_; }
  void send(int signal) const;
  // Ends every process that the child left behind, except agents and `ours` with their descendants.
  // Blocks 4 s at most: a process that hangs in the kernel even after SIGKILL is left there.
  int end_leftovers(const std::vector<pid_t>& ours = {}) const;

 private:
  void reap();
  sigset_t before_{};
  void (*pipe_before_)(int) = SIG_DFL;  // what SIGPIPE did
  sigset_t watched_{};
  Fd signals_;
  pid_t pid_ = -1;
  std::optional<ChildEnd> end_;
};

}  // namespace backstay::bin
