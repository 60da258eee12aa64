// The shares of ranks and places in files: arithmetic, no I/O. The words are those of paper 004: np
// ranks, ng groups of neighbouring ranks with one writer each, nf files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "format/segment.h"

namespace backstay::strategy {

// How many groups of `each` hold `all`; the last one may be smaller.
template <typename Number>
constexpr Number ceil_div(Number all, Number each) {
  return (all + each - 1) / each;
}

// `count` things in order are shared out equally: shares differ by one at most. `shares`: at most
// `count`.
constexpr int first_of_share(int share, int count, int shares) {
  return static_cast<int>(static_cast<long>(share) * count / shares);
}
constexpr int share_of(int which, int count, int shares) {
  return static_cast<int>((static_cast<long>(which + 1) * shares - 1) / count);
}

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// By member of a group or a file, and by field of its objects.
using BytesOfFields = std::vector<std::vector<std::uint64_t>>;

inline std::size_t most_fields(const BytesOfFields& members) {
  std::size_t most = 0;
  for (const auto& member : members) most = std::max(most, member.size());
  return most;
}

// Puts the first field of every member one behind the other, then the second, and so on, as data
// blocks are sorted by field (section III-B); behind the segment's header. Fields of `align` bytes
// and more begin at a multiple of it. Turns bytes into offsets. Returns where the file ends.
inline std::uint64_t lay_out(BytesOfFields& members, std::uint64_t align) {
  std::uint64_t end = format::slot_bytes(format::segment_header_bytes);
  const std::size_t fields = most_fields(members);
  for (std::size_t field = 0; field < fields; ++field) {
    for (auto& member : members) {
      if (field >= member.size()) continue;
      if (member[field] >= align) end = round_up(end, align);
      const std::uint64_t bytes = std::exchange(member[field], end);
      end += bytes;
    }
  }
  return end;
}

}  // namespace backstay::strategy
