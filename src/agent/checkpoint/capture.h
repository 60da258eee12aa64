// Taking a version: ranks begin, get buffers, fill them, end; then the version is captured.
//
// Rules kept here:
// - Buffers go round-robin to the ranks that wait, so that a full pool slows all ranks alike; a
//   rank waits, it does not fail.
// - Chunks are handed to the store as they arrive.
// - A version is captured when every rank has ended and every byte is in the pool. Where the pool
//   was too small to hold it whole, ranks wait until it is local instead: otherwise a later write
//   error could take back what was announced to them.
// - A rank that disappears before its end gives the version up for all.
// - A version that the store could not write stays in the pool and is tried again when the next
//   version begins, until a newer one is captured.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "agent/disk/store.h"
#include "agent/version/job_state.h"
#include "agent/version/warnings.h"

namespace backstay::agent {

class Capture {
 public:
  explicit Capture(JobState& state) : state_(state) {}

  // Messages of a rank. An error means that the rank broke the protocol; its connection ends.
  Status begin(const RankLink& link, const wire::Begin& begin);
  Status filled(const RankLink& link, const wire::Filled& filled);
  Status end(const RankLink& link, const wire::End& end);
  // The rank is gone, or a new run begins.
  void rank_lost(Rank rank);
  // Gives up the version in progress, if any, and sends every rank the reason.
  void abort(const Error& why);

  // Every node has it, and its record.
  void local(const StoredVersion& stored);

  // Events of the store.
  void on(const ChunkWritten& event);
  void on(const VersionFailed& event);

  // Versions that could not be written are tried once more.
  void retry_failed();

  // Hands out buffers that have become free.
  void grant();

  bool filling() const { return filling_.has_value(); }
  bool waits_for_buffers() const;
  // Versions that are captured and on their way to local.
  bool draining() const;

 private:
  struct RankProgress {
    std::uint64_t object_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint32_t wanted = 0;  // buffers still to be granted
    std::set<std::uint32_t> granted;
    bool ended = false;
  };
  struct Filling {
    VersionNumber version = 0;
    std::map<Rank, RankProgress> ranks;
    bool all_ended = false;
  };

  MemoryVersion& filling_version();
  Status start(const wire::Begin& begin);
  std::string used_up() const;
  void take_in(MemoryVersion& version, const RankLink& link, const wire::ChunkInPool& chunk);
  void send_to_store(MemoryVersion& version, HeldChunk& chunk);
  void all_ended();
  void captured();
  void drop_superseded();
  void record_captured(const MemoryVersion& version) const;
  void record_local(const StoredVersion& stored);
  bool starved() const;
  bool store_has_buffers() const;
  Reclaim reclaimable() const;
  void seal(const MemoryVersion& version);

  JobState& state_;
  std::optional<Filling> filling_;
  UnreportedWarnings unreported_;
  // The last version that was given up. A rank that has not read
  // that message yet may begin it later.
  VersionNumber given_up_ = 0;
  // Buffers of versions that were given up while the store wrote them: free when they come back.
  std::multimap<VersionNumber, std::uint32_t> orphans_;
};

}  // namespace backstay::agent
