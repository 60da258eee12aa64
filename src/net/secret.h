// The run's secret (docs/protocol/network.md#handshake), and a file of 64 hexadecimal digits that it may stand in: for
// programs without ranks, such as bench/net. An agent gets it from its ranks.
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
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  const std::uint8_t* data() const { return value_.data(); }
  bool operator==(const Secret&) const = default;

 private:
  Secret() = default;
  std::array<std::uint8_t, bytes> value_{};
};

// Reads the file. Errors: not_found, permission (not ours, or others may read or write it: the message says
// what to do), format (not a secret), io.
Result<Secret> load_secret(const std::string& path);

// Reads the file, or makes it if there is none. Several processes may try at once, also on a shared file
// system: all get the same. Errors: as load_secret, no_space.
Result<Secret> load_or_create_secret(const std::string& path);

}  // namespace backstay::net
