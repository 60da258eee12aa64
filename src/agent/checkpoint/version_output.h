// The way of a version's chunks from the pool to the store, alike for what ranks and what writers
// save: chunks go to the store as they arrive, their buffers come back, and the version is sealed,
// given up, or written once more.
//
// A version that the store could not write stays in the pool, as it is nowhere else, until it is
// tried again or its owner drops it.
#pragma once

#include <map>

#include "agent/disk/store.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class VersionOutput {
 public:
  explicit VersionOutput(JobState& state) : state_(state) {}

  // A new version in the pool, of the present run. Precondition: its number is greater than all
  // before.
  MemoryVersion& begin(VersionNumber number);
  // The store opens it. `bytes`: a guess of its length; `hoped_bytes`: another one, for which room
  // is reserved where there is some.
  void open(const MemoryVersion& version, std::uint64_t bytes, std::uint64_t hoped_bytes = 0);
  // Precondition: open.
  void take_in(MemoryVersion& version, const format::ObjectId& object,
               const wire::ChunkInPool& chunk);
  // Every byte is in the pool, or was. Precondition: it has not failed.
  void seal(const MemoryVersion& version);
  // For the event log.
  void record_captured(const MemoryVersion& version) const;
  // Nothing of it is kept.
  void give_up(VersionNumber number, const Error& why);

  void on(const ChunkWritten& event);
  // True where the version is still in the pool: it has failed there.
  bool on(const VersionFailed& event);
  // Every node has its record.
  void local(const StoredVersion& stored) const;

  // Captured versions that could not be written are tried once more.
  void retry_failed();
  // The store has buffers, or will give some back once it has sealed a version.
  bool store_has_buffers() const;
  // The reason of a version that could not be written and holds buffers; null: there is none.
  const Error* failure() const;
  // Versions are captured and on their way to local.
  bool draining() const;

 private:
  void send_to_store(MemoryVersion& version, HeldChunk& chunk);
  void write_again(MemoryVersion& version);
  Reclaim reclaimable() const;

  JobState& state_;
  // Buffers of versions that were given up while the store wrote them: free when they come back.
  std::multimap<VersionNumber, std::uint32_t> orphans_;
};

}  // namespace backstay::agent
