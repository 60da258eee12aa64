// A queue between two threads. The reader may sleep on it, or watch descriptor() in its own loop.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"

namespace backstay::agent {

template <typename T>
class Mailbox {
 public:
  Mailbox() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { BACKSTAY_CHECK(event_.valid()); }

  void put(T item) {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      was_empty = items_.empty();
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
    if (was_empty) {  // one wake-up is enough: the reader takes everything
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
    }
  }

  // The oldest item. Sleeps until there is one if `wait`.
  std::optional<T> take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) filled_.wait(lock, [this] { return !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  // Sleeps until there is one, but not beyond `deadline` (base/clock.h).
  std::optional<T> take_until(std::uint64_t deadline) {
    if (deadline == no_deadline) return take(/*wait=*/true);
    std::unique_lock lock(mutex_);
    const std::uint64_t now = system_clock().monotonic_ns();
    const std::chrono::nanoseconds left(deadline > now ? deadline - now : 0);
    filled_.wait_for(lock, left, [this] { return !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  // Everything, and makes descriptor() quiet until the next put.
  std::deque<T> take_all() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read_bytes = ::read(event_.get(), &count, sizeof count);
    const std::lock_guard lock(mutex_);
    return std::exchange(items_, {});
  }

  bool empty() {
    const std::lock_guard lock(mutex_);
    return items_.empty();
  }

  // Readable while something may be waiting.
  int descriptor() const { return event_.get(); }

 private:
  Fd event_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> items_;
};

}  // namespace backstay::agent
