// Processes that are no ranks hand in the bytes of their files (docs/protocol/agent.md, "Writers"):
// each opens a version, gets buffers a few at a time, fills them, and finishes the version.
//
// Rules kept here:
// - Buffers go to the writer that has fewest, of those alike to the one that waits longest. All
//   writers of the job together hold at most half of the pool.
// - A buffer that a writer has been granted is its own until it hands it over, gives its version up
//   or is gone, also where the agent has given the version up meanwhile: it may be copying into it.
// - A version is captured when its writer has finished it and every byte is in the pool; where the
//   pool was too small to hold it whole, once it is local.
// - A writer that disappears before it has finished takes its version with it. One that has
//   finished is not needed any more.
// - Versions hold different files: none takes another's place. One that could not be written stays
//   in the pool and is tried again when a version is opened and when buffers are short.
#pragma once

#include <map>
#include <set>

#include "agent/checkpoint/version_output.h"
#include "agent/version/job_state.h"
#include "agent/version/version_pin.h"

namespace backstay::agent {

class Writers {
 public:
  Writers(JobState& state, VersionOutput& output) : state_(state), output_(output) {}

  // A run of writers begins: from now on the job takes no ranks. Where captured files come home
  // (JobState::files_come_home), each version that is on the disk, and each that is made, is pinned
  // until it is brought_home().
  void begin_run();
  bool run_began() const { return run_began_; }
  // Returns its number in the run.
  std::uint32_t join(ConnectionId connection, std::int32_t pid);
  bool any() const { return !writers_.empty(); }
  bool includes(ConnectionId connection) const { return writers_.contains(connection); }

  // An error means that the writer broke the protocol; its connection ends.
  Status receive(ConnectionId connection, const wire::Message& message);
  void disconnected(ConnectionId connection, bool goodbye);

  void local(const StoredVersion& stored);
  // Of the store.
  void on(const VersionFailed& event);
  // The files of the version are at their own places: retention may remove it. Once they are known
  // to be there, also after a restart of the agent.
  void brought_home(VersionNumber version) { not_home_.erase(version); }
  // Nothing of it is left on this node's disk.
  void gone(VersionNumber version) { not_home_.erase(version); }

  // Hands out buffers that have become free.
  void grant();
  // Versions are open, or wait until they are local to be called captured.
  bool filling() const { return !open_.empty(); }
  bool waits_for_buffers() const;

 private:
  struct Member {
    std::uint32_t number = 0;
    std::int32_t pid = 0;
    VersionNumber version = 0;        // the one that it has open, or has finished last; 0: none
    std::set<std::uint32_t> granted;  // its own now
    std::uint32_t wanted = 0;         // buffers still to be granted
    std::uint64_t waits_since = 0;    // in the order of asking
  };
  struct OpenVersionOf {
    ConnectionId writer = 0;
    format::ObjectId object;
    std::uint64_t received_bytes = 0;
    bool in_store = false;  // the store has opened it
    bool finished = false;
  };

  void pin(VersionNumber version);
  Status open(ConnectionId connection, Member& writer, const wire::Open& open);
  Status more(Member& writer, const wire::More& more);
  Status filled(Member& writer, const wire::Filled& filled);
  Status take_in(const Member& writer, const wire::ChunkInPool& chunk);
  std::uint64_t hoped_bytes(const wire::ChunkInPool& first) const;
  Status finish(Member& writer, const wire::Finish& finish);
  Status abandon(Member& writer, const wire::Abandon& abandon);
  // The one that the writer has open and has not finished; null: none, or another one.
  OpenVersionOf* filling_of(const Member& writer, VersionNumber version);
  void captured(VersionNumber version);
  void give_up(VersionNumber version, const Error& why);
  void return_buffers(Member& writer);
  Member* next_to_grant();
  std::size_t held() const;
  bool retry();
  void refuse_waiting();

  JobState& state_;
  VersionOutput& output_;
  bool run_began_ = false;
  std::uint32_t next_number_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t last_bytes_ = 0;  // of the version that was finished last
  std::uint64_t retried_ns_ = 0;
  std::map<ConnectionId, Member> writers_;
  std::map<VersionNumber, OpenVersionOf> open_;
  std::map<VersionNumber, VersionPin> not_home_;
};

}  // namespace backstay::agent
