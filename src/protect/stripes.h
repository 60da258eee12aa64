// Where the blocks of a parity group lie: docs/protocol/parity.md, "Stripes". Numbers only: no I/O,
// no clock, any thread. Members and stripes count from 0; lengths and offsets are in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "protect/groups.h"

namespace backstay::protect {

// One block of a stripe: `bytes` from `offset` of its member's segment (data) or parity file.
// Up to Stripes::block_bytes() it counts as zeros.
struct Block {
  std::uint32_t index = 0;  // in the stripe: 0 .. m-1 parity, m .. m+k-1 data
  std::uint32_t member = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Block&) const = default;
};

class Stripes {
 public:
  static constexpr std::uint64_t alignment = 4096;

  // Preconditions: a shape that make_groups allows; one length of a segment for each member.
  Stripes(ParityShape shape, std::vector<std::uint64_t> segment_bytes);

  ParityShape shape() const { return shape_; }
  // The number of members, of stripes, and of blocks in a stripe.
  std::uint32_t count() const { return shape_.members(); }
  std::uint64_t block_bytes() const { return block_bytes_; }
  // The bytes that each member stores beside its segment.
  std::uint64_t parity_bytes() const { return shape_.parity * block_bytes_; }
  std::uint64_t segment_bytes(std::uint32_t member) const { return segment_bytes_[member]; }
  bool is_parity(std::uint32_t index) const { return index < shape_.parity; }

  Block block(std::uint32_t stripe, std::uint32_t index) const;
  // The index of the block that `member` has in `stripe`.
  std::uint32_t index_of(std::uint32_t stripe, std::uint32_t member) const {
    return (member + count() - stripe) % count();
  }

 private:
  ParityShape shape_;
  std::vector<std::uint64_t> segment_bytes_;
  std::uint64_t block_bytes_;
};

}  // namespace backstay::protect
