// Bytes that follow from a seed: cheap to make, different for every seed, and checkable later
// without keeping a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace backstay::bench {

constexpr std::uint64_t content_word(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t mixed = (index + seed * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
  return mixed ^ (mixed >> 32);
}

// The last bytes that do not fill a word belong to the word that they would begin.
void fill_content(std::span<std::byte> bytes, std::uint64_t seed);
bool has_content(std::span<const std::byte> bytes, std::uint64_t seed);

}  // namespace backstay::bench
