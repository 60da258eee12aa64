// The run's secret (docs/protocol/network.md#handshake). An agent gets it from its ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace backstay::net {

// Random bytes of the operating system. Any thread.
void fill_random(void* to, std::size_t bytes);

// 32 bytes, wiped when they are no longer needed.
class Secret {
 public:
  static constexpr std::size_t bytes = 32;

  static Secret random();
  // 64 hexadecimal digits. Errors: invalid.
  static Result<Secret> from_hex(const std::string& digits);
  std::string hex() const;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  const std::uint8_t* data() const { return value_.data(); }
  bool operator==(const Secret&) const = default;

 private:
  Secret() = default;
  std::array<std::uint8_t, bytes> value_{};
};

}  // namespace backstay::net
