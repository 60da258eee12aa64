// The ranks of one group: workers send their objects to the first rank, the writer, piece by piece
// and field by field (paper 004's rbIO). In a group of one rank nothing is sent.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "base/aligned_memory.h"
#include "strategy/layout.h"
#include "strategy/strategy.h"

namespace backstay::strategy {

// Memory for pieces of objects. Kept from one version to the next: memory that was touched is
// faster.
class Buffers {
 public:
  // As strategy.buffer_mib and pool.buffer_mib say. Throws std::bad_alloc.
  explicit Buffers(const Config& config);
  std::size_t count() const { return all_.size(); }
  std::span<std::byte> at(std::size_t index) const { return all_[index].span(); }

 private:
  std::vector<AlignedMemory> all_;
};

// A piece of a member's object becomes one chunk.
struct Chunk {
  Rank rank = 0;
  std::uint64_t object_offset = 0;
  std::uint32_t length = 0;
};
// Puts the piece into memory of its length; its checksum.
using Fill = std::function<Result<std::uint64_t>(std::span<std::byte> memory)>;
// Has to call `fill` once.
using TakePiece = std::function<Status(const Chunk& chunk, const Fill& fill)>;

class WriterGroup {
 public:
  // `each`: ranks a group.
  WriterGroup(const Ranks& ranks, int each);
  int number() const { return number_; }
  int first() const { return first_; }
  bool writes() const { return ranks_.group.rank() == first_; }

  // A worker takes its memory, before anybody counts on it. Throws std::bad_alloc.
  Status prepare();

  // A worker's side: all of its object. Returns once all was received. `report` gets the times.
  Status send(client::Snapshot& snapshot, RankReport& report);

  // The writer's side: the bytes of all members' fields, by member; its own come first.
  Result<BytesOfFields> take_shapes(const client::Snapshot& snapshot) const;
  // All pieces of one field, the workers' first. An error does not end it: the workers count on it.
  Status take_field(client::Snapshot& snapshot, const BytesOfFields& shapes, std::size_t field,
                    const TakePiece& take) const;

 private:
  const Ranks ranks_;
  const int number_;
  const int first_;
  const int last_;                  // one behind
  std::optional<Buffers> buffers_;  // of a worker
};

}  // namespace backstay::strategy
