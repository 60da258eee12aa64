// Memory as O_DIRECT wants it, and bytes that show their place.
#pragma once

#include <cstring>
#include <span>

#include "base/aligned_memory.h"
#include "base/bytes.h"

namespace backstay::testing {

// Exactly `size` bytes of it, which look like no data of a test.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size) : memory_(size), size_(size) {
    std::memset(memory_.span().data(), 0xEE, size);
  }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  std::span<std::byte> all() { return memory_.span().first(size_); }
  std::span<std::byte> part(std::size_t begin, std::size_t size) {
    return all().subspan(begin, size);
  }

 private:
  AlignedMemory memory_;
  std::size_t size_;
};

// The byte at `at` of the content number `seed`.
inline std::byte pattern_at(std::uint64_t seed, std::uint64_t at) {
  const std::uint64_t mixed = (at / 8 + seed * 1000003) * 0x9E3779B97F4A7C15u;
  return static_cast<std::byte>(mixed >> (8 * (at % 8)));
}

inline void fill_pattern(std::span<std::byte> to, std::uint64_t seed, std::uint64_t at = 0) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = pattern_at(seed, at + i);
}

// The first place that differs from the pattern, or bytes.size().
inline std::size_t first_difference(Bytes bytes, std::uint64_t seed, std::uint64_t at = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern_at(seed, at + i)) return i;
  }
  return bytes.size();
}

inline Buffer pattern(std::size_t size, std::uint64_t seed) {
  Buffer bytes(size);
  fill_pattern(bytes, seed);
  return bytes;
}

}  // namespace backstay::testing
