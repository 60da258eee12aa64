// Damage for tests: all single flipped bytes, all truncations, and checksums made good again so
// that the checks behind them are reached.
#pragma once

#include <cstring>
#include <functional>

#include "base/bytes.h"
#include "base/checksum.h"

namespace backstay::test {

// Calls `use(damaged, position)` with every byte in turn changed, in three ways: the lowest bit,
// the highest bit, all bits.
inline void for_every_flip(const Buffer& good,
                           const std::function<void(const Buffer&, std::size_t)>& use) {
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned bits : {0x01U, 0x80U, 0xFFU}) {
      Buffer damaged = good;
      damaged[at] ^= static_cast<std::byte>(bits);
      use(damaged, at);
    }
  }
}

// Calls `use(shorter)` with every proper prefix.
inline void for_every_prefix(const Buffer& good, const std::function<void(const Buffer&)>& use) {
  for (std::size_t size = 0; size < good.size(); ++size) {
    use(Buffer(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

template <typename T>
void overwrite(Buffer& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Puts at `at` the checksum of the bytes from `begin` to there.
inline void reseal(Buffer& bytes, std::size_t at, std::size_t begin = 0) {
  overwrite(bytes, at, checksum(Bytes(bytes).subspan(begin, at - begin)));
}

}  // namespace backstay::test
