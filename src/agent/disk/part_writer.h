// Writes this node's part of one version to the node's disk: its segment as the chunks come, then
// its manifest (steps commit.1 to commit.3 of store.h). The store's thread; several may be open at
// the same time.
//
// After its first error a part takes no more chunks; the owner removes what is there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/disk/store.h"
#include "base/aligned_memory.h"

namespace backstay::agent {

class PartWriter {
 public:
  PartWriter(std::string job, const VersionInfo& info);

  const VersionInfo& info() const { return info_; }
  const std::string& folder() const { return folder_; }
  std::uint64_t segment_bytes() const { return next_offset_; }

  // Makes the segment. `bytes`: a guess of its chunks' length. May be tried again. Errors: those of
  // the tier.
  Status open(tier::Tier& tier, std::uint64_t bytes);
  // Precondition: open, no error, not full(). The chunk's memory stays until it is reaped.
  void write(const WriteChunk& command);
  bool full() const { return in_flight() >= writer_->depth(); }
  unsigned in_flight() const { return writer_ ? writer_->in_flight() : 0; }
  std::vector<ChunkWritten> reap(bool wait);
  // Seals the segment and writes the manifest. Precondition: nothing is in flight, no error. What
  // its older chunks need must be in the tier; else not_found, or the error of that segment.
  Result<VersionSealed> finish(tier::Tier& tier, SealVersion& command);

  // The first one.
  const std::optional<Error>& error() const { return error_; }
  void fail(const Error& error) { error_ = error; }
  // Lets go of the segment. Precondition: nothing is in flight.
  void close() { writer_.reset(); }

 private:
  Result<format::Manifest> make_manifest(SealVersion& command);

  const std::string job_;
  const VersionInfo info_;
  const std::string folder_;
  std::optional<AlignedMemory> header_;
  std::unique_ptr<tier::Writer> writer_;  // ends first: its requests may still read the header
  std::uint64_t next_offset_;
  std::uint64_t next_tag_ = 0;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> buffers_;  // by tag
  std::vector<format::ChunkEntry> chunks_;
  std::optional<Error> error_;
};

// What a part that is tried again has left. Copies of other nodes' parts may lie there already, and
// their owners count on them.
Status remove_part(tier::Tier& tier, const std::string& folder, const VersionInfo& part);

// A part that is finished, as PartWriter::finish() has it.
struct Finishing {
  PartWriter* part = nullptr;
  SealVersion* command = nullptr;
  std::optional<Result<VersionSealed>> sealed = {};
};
// All at the same time, of different versions.
void finish_at_once(tier::Tier& tier, std::vector<Finishing>& parts);

}  // namespace backstay::agent
