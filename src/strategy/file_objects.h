// Objects of one version, read out of its files. Every chunk is held against its checksum, and read
// a second time where it is wrong (store/part_reader.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "client/object_reader.h"
#include "store/part_reader.h"

namespace backstay::strategy {

// One rank's object in the part that holds it.
struct FoundObject {
  store::PartReader* reader = nullptr;
  const format::ObjectEntry* object = nullptr;
  std::span<const format::ChunkEntry> chunks;
};

// Takes a chunk that is right; may keep the memory by moving it away. An error ends the reading.
using TakeChunk = std::function<Status(const format::ChunkEntry& chunk, AlignedMemory& memory)>;
// Several at once, in any order.
Status read_chunks(store::PartReader& reader, const std::vector<const format::ChunkEntry*>& chunks,
                   const TakeChunk& take);

class FileObjects final : public client::SavedObjects {
 public:
  // The tier must live longer.
  FileObjects(tier::Tier& tier, format::CommitRecord record)
      : tier_(tier), record_(std::move(record)) {}

  // Valid until the next call. Looks first where ranks that follow each other would have put it.
  // Errors: corrupt (no part has it), those of read_manifest() and of the tier.
  Result<FoundObject> find(Rank rank);

  std::unique_ptr<client::ObjectReader> of(Rank rank) override;
  std::uint64_t piece_bytes() const override;

 private:
  struct Part {
    format::Manifest manifest;
    std::unique_ptr<store::PartReader> reader;  // of that manifest
  };
  Result<Part*> part(NodeId node);

  tier::Tier& tier_;
  const format::CommitRecord record_;
  std::map<NodeId, std::unique_ptr<Part>> parts_;
};

}  // namespace backstay::strategy
