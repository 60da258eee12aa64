// Reads the chunks of a node's part of a version, wherever they lie: in its own segment, or in
// those of older versions that it needs; in the first of some tiers that has them right.
//
// Every chunk is held against its checksum. One that is wrong, or cannot be read, is read a second
// time, as the trouble may pass, and then from the next tier. One thread; blocks on the tiers where
// it opens a segment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/manifest.h"
#include "store/file_of.h"
#include "tier/tier.h"

namespace backstay::store {

class PartReader {
 public:
  // Reads what it has of the part's own segment from `offset` on, as the agent's pool does; false:
  // it has not.
  using First = std::function<bool(std::uint64_t offset, std::span<std::byte> memory)>;
  // The best tier first; before them `first`, unless it is null. Tiers and manifest must live
  // longer.
  PartReader(std::vector<tier::Tier*> tiers, const format::Manifest& manifest, First first = {})
      : tiers_(std::move(tiers)), manifest_(&manifest), first_(std::move(first)) {}

  // Opens the part's own segment. Errors: those of Tier::open(), of the last tier.
  Status open();

  // How many chunks start() takes at once; beyond it waits. Precondition: open.
  unsigned depth() const { return readers_.begin()->second->depth(); }
  // Started and not reaped.
  std::size_t in_flight() const { return reads_.size() + done_.size(); }
  // `memory`: the whole slot, aligned to 4096; it and the chunk, which is the manifest's, stay
  // valid until the tag is reaped.
  void start(const format::ChunkEntry& chunk, std::span<std::byte> memory, std::uint64_t tag);
  // Chunks that are right, or have an error: corrupt, not_found, io, which says of which bytes.
  // Blocks for at least one if `wait` and one is in flight.
  std::vector<tier::Done> reap(bool wait);
  // One chunk alone. Precondition: nothing is in flight.
  Status read(const format::ChunkEntry& chunk, std::span<std::byte> memory);

  // The segment that a chunk lies in, in the first tier that has it, for who checks what it reads.
  // Errors: as of open_needed(); of its own segment, whose header is not looked at, of
  // Tier::open().
  Result<tier::Reader*> segment_of(const format::ChunkEntry& chunk);

 private:
  struct Read {
    const format::ChunkEntry* chunk = nullptr;
    std::span<std::byte> memory;
    std::size_t tier = 0;
    bool second = false;
  };
  using Place = std::pair<std::size_t, FileOf>;  // index of the tier

  Result<tier::Reader*> open(const Place& place);
  bool read_first(const Read& read) const;
  void submit(std::uint64_t tag, Read& read);
  void take_in(tier::Reader& reader, bool wait);
  void arrived(const tier::Done& done);
  void end(std::uint64_t tag, Status status);

  std::vector<tier::Tier*> tiers_;
  const format::Manifest* manifest_;
  First first_;
  std::map<std::uint64_t, Read> reads_;  // by tag
  std::vector<tier::Done> done_;
  std::map<Place, std::unique_ptr<tier::Reader>> readers_;
};

// The chunk's payload against its checksum. Errors: corrupt, which says of which bytes; `older`:
// that has them for another version.
Status check_chunk(const format::ChunkEntry& chunk, Bytes payload,
                   const std::optional<FileOf>& older = {});

}  // namespace backstay::store
