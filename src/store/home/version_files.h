// The captured files of a node's part of a version (docs/format/files.md). Every chunk is checked.
// Blocks on the tier. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/aligned_memory.h"
#include "format/files.h"
#include "format/manifest.h"
#include "store/part_reader.h"
#include "tier/tier.h"

namespace backstay::store {

class VersionFiles {
 public:
  // Reads the manifest and the tables. The tier must live longer. Errors: not_found, corrupt,
  // format, io.
  static Result<std::unique_ptr<VersionFiles>> open(tier::Tier& tier,
                                                    const format::CommitRecord& record,
                                                    NodeId node);

  struct Entry {
    format::CapturedFile file;
    format::ObjectId object;
  };
  // By path. Where several objects name one, the record that counts.
  const std::map<std::string, Entry>& files() const { return files_; }

  // Calls use(offset in the file, bytes) for all that the file has besides holes, in the order of
  // the object, each byte once. An error of `use` ends it. Errors besides: corrupt, io.
  using Use = std::function<Status(std::uint64_t, Bytes)>;
  Status read(const Entry& entry, const Use& use);

 private:
  VersionFiles(tier::Tier& tier, format::Manifest manifest);
  Status read_table(const format::ObjectEntry& object);
  Result<Buffer> range(const format::ObjectEntry& object, std::uint64_t begin, std::uint64_t end);
  // The chunk of the object in which that byte lies, in memory_.
  Result<const format::ChunkEntry*> load(const format::ObjectEntry& object, std::uint64_t at);

  const format::Manifest manifest_;
  PartReader reader_;
  const AlignedMemory memory_;
  const format::ChunkEntry* loaded_ = nullptr;  // of manifest_, whose bytes are in memory_
  std::map<std::string, Entry> files_;
};

}  // namespace backstay::store
