// One rank's object in a part of its own: a file per process. Bytes are copied and summed in one
// pass into a few buffers, and written from there while the next ones are filled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/config.h"
#include "client/capture.h"
#include "store/part_writer.h"
#include "strategy/events.h"

namespace backstay::strategy {

// The buffers of a rank that writes. Kept from one version to the next: memory that was touched is
// faster.
class Buffers {
 public:
  // As strategy.buffer_mib and pool.buffer_mib say. Throws std::bad_alloc.
  explicit Buffers(const Config& config);
  std::uint32_t piece_bytes() const { return piece_bytes_; }
  std::size_t count() const { return all_.size(); }
  std::span<std::byte> at(std::size_t index) const { return all_[index].span(); }

 private:
  const std::uint32_t piece_bytes_;
  std::vector<AlignedMemory> all_;
};

// All of a part but the record; safe on return. `report` gets what it holds, and the times. Errors:
// of the source, the tier.
Status write_part(store::PartWriter& part, Rank rank, client::ObjectSource& source,
                  std::uint64_t captured_ns, Buffers& buffers, RankReport& report);

}  // namespace backstay::strategy
