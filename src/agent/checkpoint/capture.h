// Taking a version: ranks begin, get buffers, fill them, end; then the version is captured.
//
// Rules kept here:
// - Buffers go round-robin to the ranks that wait, so that a full pool slows all ranks alike; a
//   rank waits, it does not fail.
// - Chunks are handed to the store as they arrive.
// - A version is captured when every rank has ended and every byte is in the pool. Where the pool
//   was too small to hold it whole, ranks wait until it is safe on the disk instead: otherwise a
//   later write error could take back what was announced to them. On one node that is when it is
//   local, on several once this node has prepared it.
// - A rank that disappears before its end gives the version up for all.
// - A rank may still copy into the buffers that it has been granted when its version is given up.
//   They stay its own until it answers that it has heard, or until it is gone.
// - A version that the store could not write stays in the pool and is tried again when the next
//   version begins, until a newer one is captured.
// - A rank may keep chunks of an older version, which are not in the pool: such a version is
//   captured once it is safe on the disk, too.
// - A rank that writes streams asks for buffers before it knows its object's length, also long
//   before the other ranks begin. Between its calls it holds one buffer at most, that it has begun
//   to fill; a rank that waits for one holds none. So there is no deadlock where the pool has a
//   buffer for each rank; twice as many are asked for, as writers may hold half of the pool.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "agent/checkpoint/version_output.h"
#include "agent/disk/store.h"
#include "agent/version/job_state.h"
#include "agent/version/warnings.h"

namespace backstay::agent {

class Capture {
 public:
  Capture(JobState& state, VersionOutput& output) : state_(state), output_(output) {}

  // A message of a rank, if it belongs to a checkpoint; else nothing. An error means that the rank
  // broke the protocol; its connection ends.
  std::optional<Status> receive(const RankLink& link, const wire::Message& message);
  // The rank is gone, or a new run begins.
  void rank_lost(Rank rank);
  // Gives up a version of which there are streams only: its ranks do something else now.
  void leave_streams(const std::string& why);
  // Gives up the version in progress, if any, and sends every rank the reason.
  void abort(const Error& why);

  // The version is not captured before let_go(), though all of its ranks have ended: until then it
  // must not count (docs/protocol/cut.md, "The version").
  void hold(VersionNumber version) { held_ = version; }
  void let_go();
  // A version that is held, or to be begun, is given up: who begins it still is told why.
  void give_up(VersionNumber version, const Error& why);

  // This node's part is on its disk.
  void prepared(VersionNumber version);
  // Every node has it, and its record.
  void local(const StoredVersion& stored);

  // Of the store.
  void on(const VersionFailed& event);

  // Hands out buffers that have become free.
  void grant();

  bool filling() const { return filling_.has_value(); }
  // Ranks are inside of a checkpoint, which is soon over. Streams may be written for hours.
  bool collecting() const;
  bool waits_for_buffers() const;

 private:
  struct RankProgress {
    std::uint64_t object_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint32_t wanted = 0;  // buffers still to be granted
    std::set<std::uint32_t> granted;
    bool begun = false;  // the length of the object is known; before that it writes streams
    bool ended = false;
  };
  struct Filling {
    VersionNumber version = 0;
    std::map<Rank, RankProgress> ranks;
    bool all_ended = false;
  };

  Status begin(const RankLink& link, const wire::Begin& begin);
  Status more(const RankLink& link, const wire::More& more);
  Status kept(const RankLink& link, const wire::Kept& kept);
  Status filled(const RankLink& link, const wire::Filled& filled);
  bool fits(const RankProgress& progress, const wire::ChunkInPool& chunk) const;
  Status end(const RankLink& link, const wire::End& end);
  void answered(Rank rank);
  void heard(Rank rank, const wire::Abandon& given_up);
  // The rank takes part in the version from now on, which begins where no other rank does so yet.
  // Null: it cannot, and has been told why.
  Result<RankProgress*> join(const RankLink& link, VersionNumber version, std::uint64_t bytes);
  MemoryVersion& filling_version();
  Status start(VersionNumber version, std::uint64_t bytes);
  std::string used_up() const;
  void end_if_all_have();
  void all_ended();
  void captured();
  void drop_superseded();
  bool starved() const;
  void take_back(std::set<std::uint32_t>& buffers);

  JobState& state_;
  VersionOutput& output_;
  std::optional<Filling> filling_;
  // Buffers granted for a version that was given up, of ranks that have not answered yet.
  std::map<Rank, std::set<std::uint32_t>> unanswered_;
  UnreportedWarnings unreported_;
  VersionNumber held_ = 0;
  // The last version that was given up, and why. A rank that has not read that message yet, or has
  // read it while it waited for something else, may begin it later.
  VersionNumber given_up_ = 0;
  Error given_up_why_{Code::none, ""};
};

}  // namespace backstay::agent
