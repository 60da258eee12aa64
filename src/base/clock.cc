#include "base/clock.h"

#include <chrono>

namespace backstay {

namespace {
template <typename ClockType>
std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(ClockType::now().time_since_epoch())
          .count());
}

class SystemClock final : public Clock {
 public:
  std::uint64_t monotonic_ns() const override { return now_ns<std::chrono::steady_clock>(); }
  std::uint64_t wall_ns() const override { return now_ns<std::chrono::system_clock>(); }
};
}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace backstay
