// Bytes that come piece by piece go to the agent in buffers of its pool (docs/protocol/agent.md):
// they are copied into a buffer that the agent has granted, which is handed over once it is full.
// Waits for a buffer only while it holds none, so no two processes wait for each other's
// buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>

#include "base/checksum.h"
#include "base/result.h"
#include "client/connection.h"

namespace backstay::client {

class PoolFill {
 public:
  struct Habits {
    // To have, or to have asked for: the agent writes some buffers while others are filled, and one
    // process does not take them all.
    std::uint32_t buffers_max;
    // Begins with few buffers, and asks for more once half of them are used. Else asks only while
    // it holds none, for what the present append() will fill and no more.
    bool asks_ahead;
    std::string_view before_more, after_filled;  // failpoints
  };
  explicit PoolFill(const Habits& habits) : habits_(habits) {}

  // A version begins, for which so many buffers have been asked.
  void begin(Connection& agent, VersionNumber version, std::uint32_t asked);
  // The version has ended, or the agent has.
  void forget();
  // Nothing of it is kept; the agent has back what it has lent. Errors: agent_lost.
  Status give_up();

  VersionNumber version() const { return version_; }  // the one that is begun; 0: none
  std::uint64_t bytes() const { return bytes_; }      // appended to it so far

  // `copy` (offset, to, sum) -> Status copies bytes from this offset of the piece into pool memory,
  // and takes them into `sum`. Blocks while the pool is full. Errors: those of `copy`, the agent's
  // reason for giving the version up, agent_lost.
  template <typename Copy>
  Status append(std::uint64_t bytes, Copy&& copy) {
    for (std::uint64_t at = 0; at < bytes;) {
      if (used_ == 0) BACKSTAY_TRY(next_buffer(bytes - at));
      const auto to =
          buffer_.subspan(used_, std::min<std::uint64_t>(bytes - at, buffer_.size() - used_));
      BACKSTAY_TRY(copy(at, to, sum_));
      at += to.size();
      used_ += static_cast<std::uint32_t>(to.size());
      bytes_ += to.size();
      if (used_ == buffer_.size()) BACKSTAY_TRY(hand_over());
    }
    return {};
  }
  // The last buffer, which need not be full. Errors: agent_lost.
  Status hand_over();
  // The next message of the agent. True: the version is captured. Errors: as append().
  Result<bool> receive();

 private:
  Status next_buffer(std::uint64_t wanted_bytes);
  Status ask_for_more(std::uint64_t wanted_bytes);

  const Habits habits_;
  Connection* agent_ = nullptr;  // not owned
  VersionNumber version_ = 0;
  std::uint64_t bytes_ = 0;
  std::deque<std::uint32_t> granted_;  // the front one is being filled
  std::span<std::byte> buffer_;        // its memory
  std::uint32_t used_ = 0;             // bytes of `buffer_`
  Checksum sum_;                       // of these bytes
  std::uint32_t asked_ = 0;            // buffers that were asked for and not granted yet
  std::uint32_t window_ = 0;           // buffers to have or to have asked for
};

}  // namespace backstay::client
