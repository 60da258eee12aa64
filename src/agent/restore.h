// Bringing a version back: to all ranks of a run (restart), or to one rank (fetch).
//
// Steps, for all participants together:
//   1. choose the newest version that is not known to be damaged (or the one that was asked for), and where it is
//      nearest: in the pool, on the disk, in the durable directory;
//   2. announce it (Plan), bring its chunks into the pool unless they are there, hand them out;
//   3. every rank verifies every chunk (Verified); anything damaged or unreadable: the same version once
//      more, as the trouble may pass; if it does not, damage sets the version aside there, a read error skips
//      it there for this restore only; back to 1;
//      (The ranks exchange chunks from the disk with what their regions hold as they come, so nobody gets a buffer
//      of a plan that is given up before every rank has taken its bytes back: Withdraw, Withdrawn.)
//   4. everything is verified: Deliver. Where the pool was too small to hold all chunks they are read and
//      handed out a second time;
//   5. every rank answers Restored; all are told Captured.
// A failure before step 4 leaves every participant's memory as it was. A participant that disappears ends the restore for all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "agent/job_state.h"

namespace backstay::agent {

// Where a version's bytes come from; the order is that of choice.
enum class Place { pool, local, durable };

class Restore {
 public:
  struct Participant {
    ConnectionId connection = 0;
    Rank rank = 0;  // whose object it gets
    HomeRange home;
  };

  // A restart of all ranks.
  Restore(JobState& state, const std::vector<Participant>& participants, const wire::Restart& what);
  // Of the participant's object only the chunks that meet the range are moved.
  Restore(JobState& state, const std::vector<Participant>& participants, const wire::Fetch& what);

  void start();
  // Over for everybody, and nothing of it is in flight any more.
  bool done() const;
  bool includes(ConnectionId connection) const;

  Status verified(ConnectionId connection, const wire::Verified& verified);
  void refuse(ConnectionId connection, const wire::Refuse& refuse);
  void restored(ConnectionId connection, const wire::Restored& restored);
  void withdrawn(ConnectionId connection, const wire::Withdrawn& withdrawn);
  void disconnected(ConnectionId connection);

  void on(const ManifestLoaded& event, Place place);
  void on(const ChunkRead& event);
  // Buffers may have become free.
  void pump();
  bool waits_for_buffers() const { return !to_read_.empty(); }

 private:
  enum class Phase { choosing, verifying, withdrawing, delivering, done };
  struct Part {  // a participant's share of the work
    Participant who;
    std::uint64_t object_bytes = 0;
    std::uint64_t begin = 0;  // the range that it wants
    std::uint64_t end = 0;
    std::uint64_t chunks = 0;  // that meet it
    std::uint64_t verified = 0;
    bool restored = false;
    bool has_left = false;
    bool holds = false;  // may have exchanged chunks; asked to take its bytes back
    std::map<std::uint32_t, std::size_t> out;  // buffer -> index of the chunk, until verified

    bool wants(std::uint64_t offset, std::uint32_t length) const {
      return offset < end && offset + length > begin;
    }
  };

  void choose();
  std::optional<Place> place_of(VersionNumber version) const;
  std::map<VersionNumber, StoredVersion>& versions_here();
  void post_here(Command command);
  void serve_from_memory(MemoryVersion& version);
  void plan_from_disk(const format::Manifest& manifest);
  void announce();
  void queue_chunks();
  void hand_out(Part& part, const wire::ChunkInPool& chunk);
  void trouble(const Error& why);
  void note_trouble(const Error& why);
  void give_version_up(const Error& why);
  void maybe_deliver();
  void finish(Code code, const std::string& message);
  void record_end(Code code, const std::string& message) const;
  void withdraw(std::function<void()> next);
  void maybe_withdrawn();
  void stop_reading();
  void release_all();
  bool known_ranks(std::uint32_t ranks, const std::map<Rank, std::uint64_t>& object_bytes);
  Part* part_of(ConnectionId connection);
  static std::vector<Part> parts_of(const std::vector<Participant>& participants);

  struct Planned {
    std::size_t part = 0;  // index in parts_
    format::ChunkEntry chunk;
  };

  JobState& state_;
  std::vector<Part> parts_;
  const wire::Fetch what_;
  const VersionNumber wanted_;  // 0: the newest
  const VersionNumber below_;   // 0: any
  const bool whole_job_;
  Phase phase_ = Phase::choosing;
  VersionNumber version_ = 0;
  Place place_ = Place::local;
  bool pinned_ = false;            // its bytes in the pool
  bool kept_here_ = false;         // the store (or drain) keeps the version for us
  bool held_ = true;               // chunks stay in their buffers until the end
  std::uint32_t saved_ranks_ = 0;  // of `version_`
  std::set<std::pair<VersionNumber, Place>> tried_;
  std::map<std::pair<VersionNumber, Place>, Code> first_trouble_;  // of what was read a second time
  std::string damage_;  // of the versions that were given up on the way
  std::function<void()> after_withdrawal_;
  std::uint64_t began_ns_ = 0;
  std::vector<Planned> planned_;
  std::deque<std::size_t> to_read_;               // indexes into planned_
  std::map<std::uint64_t, std::size_t> reading_;  // ticket -> index into planned_
  std::map<std::uint32_t, std::size_t> in_pool_;  // held buffer -> index into planned_
  std::uint64_t next_ticket_ = 0;
  std::uint32_t attempt_ = 0;  // plans so far: answers to an earlier one do not count
  // Tickets of a plan that was given up: their buffers are free when they come back.
  std::set<std::uint64_t> orphans_;
};

}  // namespace backstay::agent
