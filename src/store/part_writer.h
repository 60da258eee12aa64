// Writes one node's part of a version into a tier: the segment as its chunks come, in any order,
// and then the manifest (steps commit.1 to commit.3 of file_writer.h). A version exists once its
// commit record is put, too (records.h).
//
// After its first error a part takes no more chunks; the owner removes what is there. One thread at
// a time; open() and finish() block on the tier.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/manifest.h"
#include "store/file_writer.h"
#include "store/stored_version.h"
#include "tier/tier.h"

namespace backstay::store {

struct NewChunk {
  format::ObjectId object;
  std::uint64_t object_offset = 0;
  std::uint32_t length = 0;
  std::uint64_t checksum = 0;  // base/checksum.h
  // The whole slot: length rounded up to 4096; padding is zeroed here.
  std::span<std::byte> memory;
};

// Chunks that are not written, as older versions have them: in segments that lie in the same tier,
// of versions that stay there until this one is finished.
struct OlderChunks {
  std::vector<format::Need> needs;         // sorted by version; each named by a chunk
  std::vector<format::ChunkEntry> chunks;  // `need`: index in `needs` + 1
};

// The rest of a part's manifest, known once all chunks are written.
struct PartEnd {
  VersionNumber version = 0;
  std::uint64_t captured_ns = 0;  // since 1970
  std::vector<std::pair<format::ObjectId, std::uint64_t>> object_bytes;
  OlderChunks older = {};
  std::vector<format::Need> may_need = {};  // stands in the record beside what this part needs
};

// All of it is in the tier but the record.
struct FinishedPart {
  format::CommitRecord record;  // of a run of one node, to be put; of several it counts this part
  std::shared_ptr<const format::Manifest> manifest;
  format::SegmentHeader header;
};

class PartWriter {
 public:
  // The tier must live longer.
  PartWriter(tier::Tier& tier, std::string job, const VersionInfo& info);

  const VersionInfo& info() const { return info_; }

  // Makes the segment. `bytes`: a guess of its chunks' length. May be tried again. Errors: those of
  // the tier.
  Status open(std::uint64_t bytes);
  // Precondition: open, no error, not full(). The chunk's memory stays until its tag is reaped.
  void write(const NewChunk& chunk, std::uint64_t tag);
  bool full() const { return in_flight() >= file_.depth(); }
  unsigned in_flight() const { return file_.in_flight(); }
  // Blocks for at least one request if `wait` and one is in flight.
  std::vector<tier::Done> reap(bool wait);
  // Seals the segment and puts the manifest. Precondition: nothing is in flight, no error. Errors:
  // not_found or corrupt (a segment that its older chunks need); those of the tier.
  Result<FinishedPart> finish(PartEnd& end);

  // The same of a segment that others have written and synced, in place of open() and write():
  // these are all of its chunks. Errors: also not_found (there is no segment).
  Result<FinishedPart> finish_written(PartEnd& end, std::vector<format::ChunkEntry> chunks,
                                      std::uint64_t segment_bytes);

  // The first one.
  const std::optional<Error>& error() const { return error_; }
  void fail(const Error& error) { error_ = error; }
  // Takes away what was written, and a manifest that lies there of an earlier try; files of other
  // nodes stay. Precondition: nothing is in flight.
  Status remove();

 private:
  Result<FinishedPart> publish(PartEnd& end);
  Result<format::Manifest> make_manifest(PartEnd& end);

  tier::Tier& tier_;
  const std::string job_;
  const VersionInfo info_;
  FileWriter file_;
  format::SegmentHeader header_;
  std::uint64_t next_offset_;
  std::vector<format::ChunkEntry> chunks_;
  std::optional<Error> error_;
};

// A part that is finished, as PartWriter::finish() has it.
struct Finishing {
  PartWriter* part = nullptr;
  PartEnd* end = nullptr;
  std::optional<Result<FinishedPart>> finished = {};
};
// All at the same time, of different versions.
void finish_at_once(std::vector<Finishing>& parts);

}  // namespace backstay::store
