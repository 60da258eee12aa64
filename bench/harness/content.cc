#include "bench/harness/content.h"

#include <cstring>

namespace backstay::bench {

void fill_content(std::span<std::byte> bytes, std::uint64_t seed) {
  const std::size_t words = bytes.size() / 8;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = content_word(seed, i);
    std::memcpy(bytes.data() + i * 8, &word, 8);
  }
  const std::uint64_t last = content_word(seed, words);
  std::memcpy(bytes.data() + words * 8, &last, bytes.size() % 8);
}

bool has_content(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::size_t words = bytes.size() / 8;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * 8, 8);
    difference |= word ^ content_word(seed, i);
  }
  const std::uint64_t last = content_word(seed, words);
  return difference == 0 && std::memcmp(bytes.data() + words * 8, &last, bytes.size() % 8) == 0;
}

}  // namespace backstay::bench
