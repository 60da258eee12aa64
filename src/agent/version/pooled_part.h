// A node's part of a version, read out of the pool as its segment is on the disk: header, chunks
// and padding, as long as their buffers were not given back.
//
// Any thread, as long as the pool lives. Made when the part is on the disk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent/memory/pool.h"
#include "format/segment.h"
#include "store/file_of.h"

namespace backstay::agent {

class PooledPart {
 public:
  struct Slot {
    std::uint64_t offset = 0;  // in the segment
    std::uint32_t length = 0;  // of payload
    std::uint32_t buffer = 0;
    std::uint64_t returns = 0;  // of the buffer (agent/memory/pool.h)
  };
  // `slots` in any order.
  PooledPart(const Pool& pool, const store::FileOf& file, const format::SegmentHeader& header,
             std::vector<Slot> slots);

  const store::FileOf& file() const { return file_; }
  // True: `to` has what the segment has from `offset` on. False: not all of it is in the pool, and
  // `to` holds garbage.
  bool read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  bool read_slot(const Slot& slot, std::uint64_t skip, std::span<std::byte> to) const;

  const Pool& pool_;
  const store::FileOf file_;
  const Buffer header_;
  std::vector<Slot> slots_;  // in the order of the segment
};

}  // namespace backstay::agent
