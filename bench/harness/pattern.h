// The sizes of the writes of one process's checkpoint, as profiled in paper 003 (NAS LU, BT and
// SP, class C, 64 processes, BLCR): 975 to 1156 writes and 23 to 40 MB a process; 60 % of the
// writes are below 4 KiB and carry 1.5 % of the bytes, 0.8 % are over 512 KiB and carry 79 %,
// the rest lies between.
#pragma once

#include <cstdint>
#include <vector>

namespace backstay::bench {

struct PatternClass {
  double writes = 0;  // share of the writes
  double bytes = 0;   // share of the bytes
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

inline constexpr std::uint64_t small_most = 4096 - 1;
inline constexpr std::uint64_t medium_most = 512 * 1024;
inline constexpr PatternClass small_writes{0.60, 0.015, 16, small_most};
inline constexpr PatternClass medium_writes{0.392, 0.195, 4096, medium_most};
inline constexpr PatternClass large_writes{0.008, 0.79, medium_most + 1, 64 << 20};

// In the order in which the process writes them. `shrink` divides the number of writes (for
// tests), not their sizes. The same arguments give the same sizes.
std::vector<std::uint64_t> make_pattern(std::uint64_t seed, int process, unsigned shrink);

}  // namespace backstay::bench
