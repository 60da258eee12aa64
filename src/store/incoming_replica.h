// One file of another node on its way onto this node's disk: the keeper's half of "Keeping" in
// docs/protocol/peers.md.
//
// Steps, each a failpoint:
//   keep.1  every piece was checked against the manifest and written
//   keep.2  the segment is sealed: content, size and name on the device
//   keep.3  the manifest is put: the copy exists from here on. Not before what it needs is here
//   keep.4  the commit record is put, where one was given and none was there
//   keep.5  the folder is synced, and those above
//   keep.6  the owner is told `kept` (replica_receiver.h)
// A crash before keep.3 leaves a segment without a manifest, which is no copy; the other files of
// that folder are not touched.
//
// One thread at a time. Blocks on the tier when it opens and seals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/manifest.h"
#include "store/file_of.h"
#include "store/incoming_file.h"
#include "tier/tier.h"

namespace backstay::store {

// A part of a segment that is copied at once; no chunk lies in two of them.
struct Piece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Piece&) const = default;
};

// Cuts [0, segment_bytes) into pieces of at most `piece_bytes_max`. Precondition: every slot is at
// most as long.
std::vector<Piece> cut(const format::Manifest& manifest, std::uint64_t piece_bytes_max);

// What a node has whose segment and manifest lie there.
HeldFile held_segment(const format::Manifest& manifest);

class IncomingReplica final : public IncomingFile {
 public:
  // `manifest`: as the owner has it.
  IncomingReplica(tier::Tier& tier, std::string job, FileOf file, Buffer manifest);

  // Checks the manifest and looks at what is there. Empty: all of it is; go on with seal(). Else
  // the pieces to write, and room for them is reserved. `replace`: what is there does not count.
  // Errors: corrupt, format (the manifest is not of that file), busy (a version of that number of
  // another run is there), config (a chunk is larger than a piece), no_space, io.
  Result<std::vector<Piece>> open(std::uint64_t segment_bytes, std::uint64_t piece_bytes_max,
                                  bool replace = false);

  void write(std::uint64_t offset, Bytes piece, Done done) override;
  Status seal(const std::optional<format::CommitRecord>& record) override;
  HeldFile held() const override { return held_; }

 private:
  Status understand(std::uint64_t segment_bytes, std::uint64_t piece_bytes_max);
  bool is_there();
  Status check_needs();
  Status check(std::uint64_t offset, Bytes piece);
  Status put_record(const format::CommitRecord& record);

  const std::string job_;
  const FileOf file_;
  const Buffer manifest_bytes_;
  format::Manifest manifest_;  // chunks of its own segment, in the order of the disk
  HeldFile held_;
  std::size_t chunks_good_ = 0;
};

}  // namespace backstay::store
