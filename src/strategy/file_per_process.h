// A file per process (paper 004's 1PFPP): each rank writes its object as a part of its own. Bytes
// are copied and summed in one pass into a few buffers, and written from there while the next ones
// are filled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/config.h"
#include "store/part_writer.h"
#include "strategy/strategy.h"

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

class FilePerProcess final : public Strategy {
 public:
  explicit FilePerProcess(const Ranks& ranks) : ranks_(ranks) {}
  std::uint32_t files() const override { return static_cast<std::uint32_t>(ranks_.group.ranks()); }
  Status write(const NewVersion& version, client::Snapshot& snapshot, RankReport& report) override;

 private:
  Status write_part(const NewVersion& version, client::Snapshot& snapshot, RankReport& report);

  const Ranks ranks_;
  std::optional<Buffers> buffers_;
};

}  // namespace backstay::strategy
