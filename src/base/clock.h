// Time behind a seam, so that a simulation can own it.
#pragma once

#include <cstdint>

namespace backstay {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary start; never goes back.
  virtual std::uint64_t monotonic_ns() const = 0;
  // Nanoseconds since 1970-01-01 UTC.
  virtual std::uint64_t wall_ns() const = 0;
};

// The machine's clock; never destroyed.
const Clock& system_clock();

// Waiting with a limit. A deadline is a point of system_clock()'s monotonic time.
inline constexpr std::uint64_t no_deadline = UINT64_MAX;
// None for a negative time, or one over 30 years.
std::uint64_t deadline_in(double seconds);
// Waits until the descriptor can be read, or is at its end; false: not by then. A signal does not
// end the wait.
bool wait_readable(int descriptor, std::uint64_t deadline);
// For poll(): rounded up, 0 once it is over, -1 for no_deadline.
int milliseconds_until(std::uint64_t deadline);

// A clock that a test moves by hand.
class ManualClock final : public Clock {
 public:
  std::uint64_t monotonic_ns() const override { return now_; }
  std::uint64_t wall_ns() const override { return now_; }
  void advance(std::uint64_t ns) { now_ += ns; }

 private:
  std::uint64_t now_ = 1'000'000'000;
};

}  // namespace backstay
