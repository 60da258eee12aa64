// Copies a version from one tier to another, every chunk checked on the way (docs/format/durable.md
// numbers the steps; each is a failpoint).
//
// Carried on piece by piece by its owner's thread, so that an agent can do other things in between:
// step() until done(). Blocks on the tiers when it opens, seals and commits. Its owner holds the
// lock of the job at the destination. After an error, or where it is given up, remove_rest().
//
// Or one file of a node alone, without a record (docs/protocol/drain.md): then another agent
// holds the lock, and writes the record with commit_copy() once all files are there.
//
// What the version needs is copied first, by the owner: no manifest is written there whose needed
// segments are not there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/clock.h"
#include "base/ids.h"
#include "format/manifest.h"
#include "store/catalog.h"
#include "store/file_writer.h"
#include "store/part_reader.h"
#include "tier/tier.h"

namespace backstay::store {

// May a copy of this version take the place of what is there under its number? Errors: busy (a
// version of another run), or why what is there could not be read.
Status check_run(const StoredVersion& there, const format::CommitRecord& record);

// For a version that is there: its record may be of an agent that died before the name was on the
// disk. Errors: io.
Status make_safe(tier::Tier& to, const format::CommitRecord& record);

// True: the destination has the version of `record`, whole. False: it has it not, or not any more
// what it had of it that was not whole. Errors: those of check_run(), io.
Result<bool> make_way(tier::Tier& to, const format::CommitRecord& record);

// Removes every version that has neither a record nor a mark of damage, what an
// interrupted copy left; but not `spared`. Errors: io.
Status remove_unfinished(tier::Tier& to, const std::string& job, VersionNumber spared = 0);

// The record, last: once segment and manifest of every node stand under their names. Errors:
// not_found (one does not), io.
Status commit_copy(tier::Tier& to, const format::CommitRecord& record);

class VersionCopy {
 public:
  struct What {
    format::CommitRecord record;    // as it is in `from`
    Level level = Level::durable;   // of the record that is written in `to`
    std::uint64_t bytes_per_s = 0;  // 0: as fast as the tiers allow
    // This node's file alone: then version, run, ranks and nodes of the record count.
    std::optional<NodeId> only = {};
    PartReader::First first = {};  // reads chunks of that file before `from` does
  };
  struct Part {
    std::uint64_t payload_bytes = 0;
    std::uint64_t digest = 0;  // of its manifest, like the next
    std::vector<format::Need> needs = {};
  };
  // Both tiers must live longer. Precondition: make_way() answered false.
  VersionCopy(tier::Tier& from, tier::Tier& to, const Clock& clock, What what);
  ~VersionCopy();  // waits for what is in flight
  VersionCopy(const VersionCopy&) = delete;
  VersionCopy& operator=(const VersionCopy&) = delete;

  // Takes in what has completed and hands out what may go on; blocks for at least one request if
  // something is in flight. Errors: of the tiers; corrupt; state (an older version that this one
  // needs is not there).
  Status step();
  bool done() const { return committed_ || part_; }
  // Nothing is in flight and the rate allows nothing before this time of the clock; 0: call step().
  std::uint64_t rests_until_ns() const;

  // After an error: the source was wrong, twice, not the way or the destination.
  bool source_is_damaged() const { return source_is_damaged_; }
  // Of payload, so far.
  std::uint64_t bytes() const { return bytes_; }
  // Preconditions: done(); all of it, or one file.
  const format::CommitRecord& committed() const { return *committed_; }
  const Part& part() const { return *part_; }
  // Takes away what lies at the destination. Not where other files may be there: of one alone
  // nothing is left anyway.
  Status remove_rest();

 private:
  struct Slot {
    AlignedMemory memory;
    const format::ChunkEntry* chunk = nullptr;
  };
  struct Segment {  // the one being copied; members that die first stand last
    Segment(tier::Tier& from, tier::Tier& to, format::Manifest of_it, PartReader::First first);
    const format::Manifest manifest;
    std::vector<const format::ChunkEntry*> chunks;  // of this segment, in the order of the disk
    std::vector<Slot> slots;
    std::vector<std::size_t> idle;  // slots
    std::size_t next_chunk = 0;
    PartReader reader;
    FileWriter writer;
    bool in_flight() const { return reader.in_flight() + writer.in_flight() > 0; }
  };

  Status open_segment();
  Status begin(Segment& segment);
  Result<format::Manifest> load_manifest();
  Status check_needs(const format::Manifest& manifest);
  Status take_in();
  Status arrived(const tier::Done& done);
  void start_reads();
  Status close_segment();
  Result<bool> is_there(const format::Manifest& manifest);
  Status commit();
  Status from_source(Status status);

  tier::Tier& from_;
  tier::Tier& to_;
  const Clock& clock_;
  const What what_;
  const std::string folder_;
  NodeId node_ = 0;  // whose segment is copied
  std::unique_ptr<Segment> segment_;
  std::uint64_t digests_ = 0;
  std::uint64_t next_ns_ = 0;  // when the rate allows the next chunk
  std::uint64_t bytes_ = 0;
  bool source_is_damaged_ = false;
  std::optional<format::CommitRecord> committed_;
  std::optional<Part> part_;
};

}  // namespace backstay::store
