#include "client/signals.h"

#include <unistd.h>

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
std::atomic<pid_t> watcher{0};  // the process that watches: its forked children do not
static_assert(std::atomic<pid_t>::is_always_lock_free, "used in a signal handler");

// How many SIGTERM end the program now (0: none does), and how many have come since the watch
// began.
std::atomic<int> ends_at{0};
std::atomic<int> stops{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

bool default_action(const Watched& one) {
  return (one.before.sa_flags & SA_SIGINFO) == 0 && one.before.sa_handler == SIG_DFL;
}

// Takes effect when the handler returns, as the signal is blocked inside of it.
void take_default_action(int number) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(number, &standard, nullptr);
  ::raise(number);
}

// Async-signal-safe: only atomics and the program's own handler.
void on_signal(int number, siginfo_t* info, void* context) {
  const bool inherited = watcher.load() != ::getpid();  // until unwatch_signals(), or put back
  if (inherited && default_action(watched[number == SIGTERM ? 1 : 0]))
    return take_default_action(number);
  if (number == SIGTERM && !inherited) {
    stop_flag.store(true);
    const int limit = ends_at.load();
    const bool enough = stops.fetch_add(1) + 1 >= limit;
    if (limit > 0 && enough && default_action(watched[1])) return take_default_action(number);
  }
  if (number == SIGUSR1 && !inherited) checkpoint_flag.store(true);
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
  stops.store(0);
  watcher.store(::getpid());
  for (Watched& one : watched) {
    struct sigaction now {};
    if (one.installed || ::sigaction(one.number, nullptr, &now) != 0) continue;
    one.installed = is_ours(now);  // the program has put it back: what was before it still holds
    const bool ignored = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_IGN;
    if (ignored || one.installed) continue;
    one.before = now;
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

Endable::Endable(int signals) { ends_at.store(signals); }
Endable::~Endable() { ends_at.store(0); }

bool checkpoint_signalled() { return checkpoint_flag.load(std::memory_order_relaxed); }
bool stop_signalled() { return stop_flag.load(std::memory_order_relaxed); }
void clear_checkpoint_signal() { checkpoint_flag.store(false); }

}  // namespace backstay::client
