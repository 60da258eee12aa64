// When others wait for what they fetch from this agent: while ranks of this node copy a version
// into the pool. The program stands still then, and the network would take processors and memory
// from it; but never for longer than `max_ns` at a time, as a copy that takes so long waits for
// something else (a full pool, a slow rank).
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace backstay::agent {

class NetworkPause {
 public:
  static constexpr std::uint64_t max_ns = 1'000'000'000;

  // Answers whether something has changed.
  bool update(bool ranks_copy, std::uint64_t now_ns) {
    if (!ranks_copy) {
      until_ns_ = 0;
    } else if (until_ns_ == 0) {
      until_ns_ = now_ns + max_ns;
    }
    const bool before = on_;
    on_ = now_ns < until_ns_;
    return on_ != before;
  }
  bool on() const { return on_; }
  // When update() is wanted although nothing has happened.
  std::uint64_t ends_ns() const { return on_ ? until_ns_ : no_deadline; }

 private:
  bool on_ = false;
  std::uint64_t until_ns_ = 0;  // 0: no rank copies
};

}  // namespace backstay::agent
