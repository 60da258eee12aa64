// Bringing a version back: to all ranks of a node (restart), or to one rank (fetch).
//
// Steps, for all participants together:
//   1. find out which version, and where each one's object is nearest (source_selector.h);
//   2. announce it (Plan), bring its chunks into the pool unless they are there, hand them out;
//   3. every rank verifies every chunk (Verified); anything damaged or unreadable: the source
//   selector is told, and back to 1.
//      (The ranks exchange chunks that do not come from the pool with what their regions hold, so
//      a buffer of a plan that is given up is not handed on before every rank has taken its bytes
//      back: Withdraw, Withdrawn.)
//   4. everything is verified. A restart on several nodes: Ready, and the ranks of all nodes agree;
//   Proceed says on what;
//   5. Deliver. Where the pool was too small to hold all chunks they are read and handed out a
//   second time;
//   6. every rank answers Restored; all are told Captured.
// A failure before step 5 leaves every participant's memory as it was. A participant that
// disappears ends the restore for all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/disk/store.h"
#include "agent/restart/source_selector.h"
#include "agent/restart/version_reader.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class Restore {
 public:
  struct Participant {
    ConnectionId connection = 0;
    Rank rank = 0;  // whose object it gets
    HomeRange home;
  };

  // A restart of all ranks of this node. With several nodes `what` names version and run.
  Restore(JobState& state, const std::vector<Participant>& participants, const wire::Restart& what);
  // Of the participant's object only the chunks that meet the range are moved.
  Restore(JobState& state, const std::vector<Participant>& participants, const wire::Fetch& what);

  void start();
  // Over for everybody, and nothing of it is in flight any more.
  bool done() const;
  // True at the first call after the restart has ended for the ranks. Reads whose results nobody
  // needs may still be under way (done()). The job notes the outcome now, as the ranks may ask for
  // it.
  bool take_end();
  // The version that all ranks of this node have now, after a restart that went well.
  std::optional<VersionOfRun> brought_back() const;
  // The parts with the objects of this node's ranks, where the next version may keep chunks of them
  // (docs/format/image.md, "Pages that are kept"). Else none.
  Parts base() const;
  // The version, where it has been read from other nodes' disks, wholly or in part.
  std::optional<VersionOfRun> read_from_others() const;
  bool includes(ConnectionId connection) const;

  Status verified(ConnectionId connection, const wire::Verified& verified);
  void refuse(ConnectionId connection, const wire::Refuse& refuse);
  void restored(ConnectionId connection, const wire::Restored& restored);
  void withdrawn(ConnectionId connection, const wire::Withdrawn& withdrawn);
  void proceed(ConnectionId connection, const wire::Proceed& proceed);
  void disconnected(ConnectionId connection);

  void on(const ManifestLoaded& event, Place place) { reader_.on(event, place); }
  void on(const ChunkRead& event) { reader_.on(event); }
  void durable_scanned() { sources_.durable_scanned(); }
  // Buffers may have become free.
  void pump();
  bool waits_for_buffers() const { return !to_read_.empty(); }

 private:
  enum class Phase { finding, verifying, ready, withdrawing, delivering, done };
  struct Part {  // a participant's share of the work
    Participant who;
    Source source;         // as it was found
    Source read_from;      // the same, with the number of the node whose file it is
    ManifestPtr manifest;  // unless the source is the pool
    std::uint64_t object_bytes = 0;
    std::uint64_t begin = 0;  // the range that it wants
    std::uint64_t end = 0;
    std::uint64_t chunks = 0;  // that meet it
    std::uint64_t verified = 0;
    bool proceeds = false;
    bool restored = false;
    bool has_left = false;
    bool holds = false;  // may have exchanged chunks; asked to take its bytes back
    std::map<std::uint32_t, std::size_t> out;  // buffer -> index of the chunk, until verified

    bool in_pool() const { return source.place == Place::pool; }
    bool wants(std::uint64_t offset, std::uint32_t length) const {
      return offset < end && offset + length > begin;
    }
  };
  struct Planned {
    std::size_t part = 0;  // index in parts_
    format::ChunkEntry chunk;
    bool placed = false;  // the rank has taken it, and does not need it once more
  };

  void find();
  void found(const SourceSelector::Found& found);
  void located(std::size_t index, const Result<Located>& manifest);
  void plan();
  bool know_objects();
  bool know_object(std::size_t index);
  void plan_reads();
  void hand_out_from_memory(Part& part);
  void announce();
  Place farthest() const;
  ManifestPtr part_on_disk(const Part& part) const;
  bool may_be_base(const format::Manifest& part) const;
  void queue_chunks();
  void read_more();
  void arrived(std::size_t index, std::uint32_t buffer, const Source& source, const Status& status);
  void unread(std::size_t index, const Source& source, const Error& why);
  void trouble(std::size_t part, const Error& why);
  bool all(bool Part::*flag) const;
  void maybe_deliver();
  void deliver();
  void finish(Code code, const std::string& message);
  void record_end(Code code, const std::string& message) const;
  void withdraw(std::function<void()> next);
  void maybe_withdrawn();
  void release_all();
  Part* part_of(ConnectionId connection);
  bool held(const Part& part) const { return part.in_pool() || held_; }
  static std::vector<Part> parts_of(const std::vector<Participant>& participants);

  JobState& state_;
  std::vector<Part> parts_;
  const wire::Fetch what_;
  const VersionNumber wanted_;  // 0: the newest
  const bool whole_job_;
  SourceSelector sources_;
  VersionReader reader_;
  Phase phase_ = Phase::finding;
  VersionNumber version_ = 0;
  RunId run_ = 0;  // that wrote it
  bool succeeded_ = false;
  bool end_taken_ = false;
  bool pinned_ = false;            // its bytes in the pool
  bool held_ = true;               // chunks that are read stay in their buffers until the end
  std::uint32_t saved_ranks_ = 0;  // of `version_`
  std::uint64_t rounds_ = 0;       // of finding
  std::size_t unlocated_ = 0;      // participants whose manifest is not here yet
  std::function<void()> after_withdrawal_;
  std::uint64_t began_ns_ = 0;
  std::vector<Planned> planned_;
  std::deque<std::size_t> to_read_;               // indexes into planned_
  bool peers_busy_ = false;                       // one had no room: not before the next pump()
  std::map<std::uint32_t, std::size_t> in_pool_;  // held buffer -> index into planned_
  std::uint32_t attempt_ = 0;  // plans so far: answers to an earlier one do not count
};

}  // namespace backstay::agent
