// Copies a version from one tier to another, every chunk checked on the way (docs/format/durable.md
// numbers the steps; each is a failpoint).
//
// Carried on piece by piece by its owner's thread, so that an agent can do other things in between:
// step() until done(). Blocks on the tiers when it opens, seals and commits. Whoever owns it holds the
// lock of the job at the destination. After an error, or where it is given up, remove_rest().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/catalog.h"
#include "base/aligned_memory.h"
#include "base/clock.h"
#include "base/ids.h"
#include "format/manifest.h"
#include "tier/tier.h"

namespace backstay::agent {

// True: the destination has the version of `record`, whole. False: it has it not, or not any more what
// it had of it that was not whole. Errors: busy (a version of that number of another run is there), io.
Result<bool> make_way(tier::Tier& to, const format::CommitRecord& record);

class VersionCopy {
 public:
  struct What {
    format::CommitRecord record;    // as it is in `from`
    Level level = Level::durable;   // of the record that is written in `to`
    std::uint64_t bytes_per_s = 0;  // 0: as fast as the tiers allow
  };
  // Both tiers must live longer. Precondition: make_way() answered false.
  VersionCopy(tier::Tier& from, tier::Tier& to, const Clock& clock, What what);
  ~VersionCopy();  // waits for what is in flight
  VersionCopy(const VersionCopy&) = delete;
  VersionCopy& operator=(const VersionCopy&) = delete;

  // Takes in what has completed and hands out what may go on; blocks for at least one request if
  // something is in flight. Errors: of the tiers; corrupt.
  Status step();
  bool done() const { return committed_.has_value(); }
  // Nothing is in flight and the rate allows nothing before this time of the clock; 0: call step().
  std::uint64_t rests_until_ns() const;

  // After an error: the source was wrong, twice, not the way or the destination.
  bool source_is_damaged() const { return source_is_damaged_; }
  // Of payload, so far.
  std::uint64_t bytes() const { return bytes_; }
  // Precondition: done().
  const format::CommitRecord& committed() const { return *committed_; }
  // Takes away what lies at the destination.
  Status remove_rest();

 private:
  struct Slot {
    AlignedMemory memory;
    format::ChunkEntry chunk;
    bool read_twice = false;
  };
  struct Segment {  // the one being copied; members in the order of their death
    format::Manifest manifest;
    std::vector<Slot> slots;
    std::vector<std::size_t> idle;  // slots
    std::size_t next_chunk = 0;
    std::unique_ptr<tier::Reader> reader;
    std::unique_ptr<tier::Writer> writer;
    bool in_flight() const { return reader->in_flight() + writer->in_flight() > 0; }
  };

  Status open_segment();
  Result<format::Manifest> load_manifest();
  Status write_header();
  Status take_in();
  Status arrived(const tier::Done& done);
  void read_into(std::size_t slot);
  void start_reads();
  Status close_segment();
  Status commit();
  Status check_names();
  Error damaged(const Error& why);

  tier::Tier& from_;
  tier::Tier& to_;
  const Clock& clock_;
  const What what_;
  const std::string folder_;
  NodeId node_ = 0;  // whose segment is copied
  std::optional<Segment> segment_;
  std::uint64_t digests_ = 0;
  std::uint64_t next_ns_ = 0;  // when the rate allows the next chunk
  std::uint64_t bytes_ = 0;
  bool source_is_damaged_ = false;
  std::optional<format::CommitRecord> committed_;
};

}  // namespace backstay::agent
