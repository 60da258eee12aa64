#include "base/clock.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

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

std::uint64_t deadline_in(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return no_deadline;
  return system_clock().monotonic_ns() + static_cast<std::uint64_t>(seconds * 1e9);
}

bool wait_readable(int descriptor, std::uint64_t deadline) {
  pollfd look{descriptor, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&look, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

int milliseconds_until(std::uint64_t deadline) {
  if (deadline == no_deadline) return -1;
  const std::uint64_t now = system_clock().monotonic_ns();
  if (now >= deadline) return 0;
  const std::uint64_t left = (deadline - now) / 1'000'000 + 1;
  return static_cast<int>(std::min<std::uint64_t>(left, std::numeric_limits<int>::max()));
}

}  // namespace backstay
