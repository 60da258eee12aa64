#include "capture/files/lock.h"

#include <linux/futex.h>

#include <atomic>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

enum State : std::uint32_t { open = 0, held = 1, awaited = 2 };
std::atomic<std::uint32_t> state;
std::uint64_t fork_signals;  // guarded by the lock

void take() {
  std::uint32_t seen = open;
  if (state.compare_exchange_strong(seen, held, std::memory_order_acquire)) return;
  while (state.exchange(awaited, std::memory_order_acquire) != open) {
    raw::call(SYS_futex, &state, FUTEX_WAIT_PRIVATE, awaited, nullptr, nullptr, 0);
  }
}

void let_go() {
  if (state.exchange(open, std::memory_order_release) == awaited) {
    raw::call(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace

Lock::Lock() : signals_(raw::block_signals()) { take(); }

Lock::~Lock() {
  let_go();
  raw::set_blocked_signals(signals_);
}

void lock_before_fork() {
  const std::uint64_t before = raw::block_signals();
  take();
  fork_signals = before;
}

void unlock_after_fork() {
  const std::uint64_t before = fork_signals;
  let_go();
  raw::set_blocked_signals(before);
}

void renew_lock_in_child() {
  const std::uint64_t before = fork_signals;
  state.store(open, std::memory_order_release);
  raw::set_blocked_signals(before);
}

}  // namespace backstay::files
