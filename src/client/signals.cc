#include "client/signals.h"

#include <array>
#include <atomic>
#include <csignal>

namespace backstay::client {

namespace {

struct Watched {
  int number;
  struct sigaction before;
  bool installed;
};

std::atomic<bool> checkpoint_flag{false};
std::atomic<bool> stop_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");
std::array<Watched, 2> watched = {{{SIGUSR1, {}, false}, {SIGTERM, {}, false}}};

// Async-signal-safe: atomics and the program's own handler, nothing else.
void on_signal(int number, siginfo_t* info, void* context) {
  if (number == SIGTERM) stop_flag.store(true);
  if (number == SIGUSR1) checkpoint_flag.store(true);
  for (const Watched& one : watched) {
    if (one.number != number) continue;
    if ((one.before.sa_flags & SA_SIGINFO) != 0) {
      one.before.sa_sigaction(number, info, context);
    } else if (one.before.sa_handler != SIG_DFL && one.before.sa_handler != SIG_IGN) {
      one.before.sa_handler(number);
    }
  }
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_signal;
}

}  // namespace

void watch_signals() {
  checkpoint_flag.store(false);
  stop_flag.store(false);
  for (Watched& one : watched) {
    if (one.installed || ::sigaction(one.number, nullptr, &one.before) != 0) continue;
    const bool ignored =
        (one.before.sa_flags & SA_SIGINFO) == 0 && one.before.sa_handler == SIG_IGN;
    if (ignored || is_ours(one.before)) continue;
    struct sigaction ours = one.before;  // keeps the program's mask and flags for its handler
    ours.sa_sigaction = &on_signal;
    ours.sa_flags = (one.before.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
    if ((one.before.sa_flags & SA_SIGINFO) == 0 && one.before.sa_handler == SIG_DFL) {
      ours.sa_flags = SA_SIGINFO | SA_RESTART;
      ::sigemptyset(&ours.sa_mask);
    }
    one.installed = ::sigaction(one.number, &ours, nullptr) == 0;
  }
}

void unwatch_signals() {
  for (Watched& one : watched) {
    struct sigaction now {};
    if (one.installed && ::sigaction(one.number, nullptr, &now) == 0 && is_ours(now)) {
      ::sigaction(one.number, &one.before, nullptr);
    }
    one.installed = false;
  }
}

bool checkpoint_signalled() { return checkpoint_flag.load(std::memory_order_relaxed); }
bool stop_signalled() { return stop_flag.load(std::memory_order_relaxed); }
void clear_checkpoint_signal() { checkpoint_flag.store(false); }

}  // namespace backstay::client
