// How versions become durable (docs/protocol/drain.md): this agent's turns, and, while it is the
// member with the lowest number that is not lost, the turns of all. In a run of one node that is
// always this agent, and it has all turns; the steps are the same, without other agents.
//
// Main loop's thread; nothing blocks. Lives as long as the run's other agents are known; at its end
// writing stops, and retention is let go.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "agent/disk/store.h"
#include "agent/drain/drain_schedule.h"
#include "agent/group/peers.h"
#include "agent/version/held_files.h"
#include "agent/version/job_state.h"
#include "agent/version/levels.h"

namespace backstay::agent {

// What the agents of a run say to each other about it.
using DrainMessage = std::variant<wire::peer::Due, wire::peer::Which, wire::peer::Parts,
                                  wire::peer::Turn, wire::peer::TurnOver, wire::peer::Durable,
                                  wire::peer::NotDurable, wire::peer::DurableGone>;

// What becomes of versions on shared storage.
class DrainEvents {
 public:
  virtual ~DrainEvents() = default;
  virtual void durable(const StoredVersion& stored) = 0;
  virtual void failed(const CopyFailed& event) = 0;
  virtual void gone(VersionNumber version) = 0;  // removed there
};

class DrainCoordinator final {
 public:
  // `levels`: which versions ranks and tools here wait for. `held`: what is on this node's disk,
  // once listed() was called. Both pointers are null in a run of one node: then the table of
  // versions says what is on the disk, and the coordinator may outlive the run.
  DrainCoordinator(JobState& state, const Levels& levels, Peers* peers, const HeldFiles* held,
                   DrainEvents& events);
  ~DrainCoordinator();
  DrainCoordinator(const DrainCoordinator&) = delete;
  DrainCoordinator& operator=(const DrainCoordinator&) = delete;

  // What this node holds is known.
  void listed();
  // Versions have come, or a rank waits: begins what is due, or asks the coordinator.
  void consider();
  // A copy of another node's file is here now: who copies its version may need a stand-in for that
  // node.
  void kept(const FileOf& file);
  // In a run of one node: hears what it has said to itself. After each other call.
  void deliver();
  // That one node at least copies now, or is to; 0: none.
  VersionNumber copying() const;

  // Of this node's drain.
  void on(const CopyPrepared& event);
  void on(const PartCopied& event);
  void on(const VersionDurable& event);
  void on(const CopyFailed& event);
  void on(const Removed& event);

  void message(NodeId from, const DrainMessage& message);
  void lost(NodeId peer, const Error& why);
  void reached(NodeId peer);
  void membership(std::span<const NodeId> lost, std::span<const NodeId> back);

 private:
  struct Version {  // the coordinator's
    format::CommitRecord record;
    VersionPin pin;  // of this node's part, from the beginning
    std::uint64_t ticket = 0;
    DrainSchedule turns;
    std::set<NodeId> asked;  // which parts they have; not answered yet
    std::map<std::uint64_t, DrainSchedule::Turn> given;
    std::optional<Error> last_trouble;
    bool prepared = false;
    bool committing = false;
    bool given_up = false;
    bool damaged = false;  // the file of a run of one node: there is no other copy
  };
  struct Own {  // this agent's turn
    NodeId from = 0;
    wire::peer::Turn turn;
  };
  struct Kept {  // by retention, for a coordinator
    VersionOfRun version;
    NodeId from = 0;
    std::uint64_t ticket = 0;
    VersionPin pin;
  };

  bool alone() const { return peers_ == nullptr; }
  NodeId coordinator() const;
  void send(NodeId to, DrainMessage message);
  std::vector<NodeId> files_of(VersionOfRun version) const;
  std::optional<format::CommitRecord> record_of_file(const FileOf& file) const;
  void tell_due();
  void tell_others(const DrainMessage& message);
  void tell_durable(NodeId peer);
  void note_gone(VersionNumber version);

  // The coordinator's.
  void begin();
  void begin(format::CommitRecord record);
  void ask_for_parts();
  void go_on();
  void commit();
  void give_up(const Error& why);
  void tell_given_up(VersionNumber version, RunId run, const Error& why);
  void end_if_over();
  void lose(NodeId member, const Error& why);
  void on(NodeId from, const wire::peer::Due& due);
  void on(NodeId from, const wire::peer::Parts& parts);
  void on(NodeId from, const wire::peer::TurnOver& over);

  // A member's.
  void on(NodeId from, const wire::peer::Which& which);
  void on(NodeId from, const wire::peer::Turn& turn);
  void on(NodeId from, const wire::peer::Durable& durable);
  void on(NodeId from, const wire::peer::NotDurable& why);
  void on(NodeId from, const wire::peer::DurableGone& gone);
  void write(const Own& own);
  void answer(const Own& own, const Error& why);
  void keep(std::optional<Kept> what);
  void let_go(NodeId coordinator);

  JobState& state_;
  const Levels& levels_;
  Peers* const peers_;
  const HeldFiles* const held_;
  const NodeId self_;
  const std::uint32_t members_;
  DrainEvents& events_;
  std::set<NodeId> lost_;
  std::set<VersionNumber> gone_;  // removed from shared storage in this run
  std::uint64_t next_ticket_;
  bool listed_ = false;
  std::vector<std::pair<NodeId, wire::peer::Which>> early_;  // for listed()
  std::map<VersionNumber, wire::peer::Due> due_;             // what others have said
  std::set<std::pair<VersionNumber, bool>> said_;            // due, to the present coordinator
  std::optional<NodeId> said_to_;
  std::optional<Version> version_;
  VersionNumber target_ = 0;  // version_, or a newer one that needs it
  std::optional<Own> own_;
  std::optional<Own> next_own_;  // of another coordinator, once that one has been stopped
  std::optional<Kept> kept_;
  std::deque<DrainMessage> to_self_;  // in a run of one node
};

}  // namespace backstay::agent
