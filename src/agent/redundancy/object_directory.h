// Who has which objects (docs/protocol/peers.md, "Who has what"): every member of a run has one.
//
//   holder     tells each registrar which objects of its ranks are on this node's disk, again when
//   it was out of reach; registrar  of the ranks with rank % members == self: remembers what it is
//   told, forgets it with the member that said
//              it, and answers lookups;
//   reader     asks the registrar of a rank.
// A registrar answers once each living member has said all that it holds: an agent that takes the
// place of another one in the middle of a run asks those that have not. Only what the living hold
// is given out. Where only a lost member had an object, the answer names that member, as it may
// have it still. That a holder still has it, and that it is good, is seen when it is read.
//
// Memory: at most entries_per_member_max objects of each member; what it says beyond that is not
// remembered. Main loop's thread; nothing blocks; `Found` is called once, later, never from within
// lookup().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/group/peers.h"
#include "agent/group/pending_requests.h"
#include "agent/group/remote_files.h"
#include "agent/version/held_files.h"

namespace backstay::agent {

class ObjectDirectory final : public ObjectLookup {
 public:
  static constexpr std::size_t entries_per_member_max = std::size_t{1} << 16;
  static constexpr std::size_t holders_max = 16;

  explicit ObjectDirectory(Peers& peers) : peers_(peers) {}
  ObjectDirectory(const ObjectDirectory&) = delete;
  ObjectDirectory& operator=(const ObjectDirectory&) = delete;

  // --- what we hold ---
  // All of it, once, after the scan.
  void announce(const std::vector<HeldFile>& held);
  // Afterwards: a file that has come, or whose version was recorded; one that has gone.
  void add(const HeldFile& held);
  void remove(const FileOf& file);
  const HeldFiles& held() const override { return held_; }
  // Every registrar that is in reach has answered announce(): time for barrier 1.
  bool complete() const { return announced_ && unanswered_.empty(); }

  // --- what others hold ---
  // Everybody is complete: barrier 1 was released. Lookups wait until then, or end with agent_lost
  // while a member is lost.
  void open();
  using ObjectLookup::lookup;
  void lookup(VersionOfRun version, Rank rank, Found found, bool parity) override;

  // --- events of the peer connections ---
  void on(NodeId from, const wire::peer::Holds& holds);
  void on(NodeId from, const wire::peer::HoldsSeen& seen);
  void on(NodeId from, const wire::peer::Lookup& lookup);
  void on(NodeId from, const wire::peer::Holders& holders);
  // False: it answers nothing that we asked.
  bool on(NodeId from, const wire::peer::No& no);
  void lost(NodeId peer, const Error& why);
  // A lost member is in reach again: what we hold is announced to it again. A message of it says
  // the same.
  void back(NodeId peer);

 private:
  struct Question {
    VersionOfRun version;
    Rank rank = 0;
    Found found;
    bool parity = false;
  };
  using Object = std::tuple<VersionNumber, RunId, Rank, bool>;  // the last: parity of its group

  NodeId registrar_of(Rank rank) const { return rank % peers_.members(); }
  void tell(const HeldFile& held, bool gone, std::optional<NodeId> only = std::nullopt);
  void tell(NodeId registrar, const wire::peer::Holds& holds);
  void tell_all(NodeId registrar);
  void ask(Question question);
  void remember(NodeId from, const wire::peer::Holds& holds);
  void forget(NodeId from, const wire::peer::Holds& holds);
  void answer(NodeId from, const wire::peer::Lookup& lookup);
  bool waits_for_members();
  void answer_waiting();
  std::string nobody_else(const Object& wanted) const;

  Peers& peers_;
  HeldFiles held_;
  bool announced_ = false;
  std::uint64_t next_batch_ = 1;
  std::map<std::uint64_t, NodeId> unanswered_;  // batch -> registrar
  std::set<NodeId> lost_;
  std::set<NodeId> want_all_;  // asked for it before announce()

  std::map<Object, std::vector<wire::peer::Holder>> objects_;  // of our ranks
  std::map<Object, std::set<NodeId>>
      away_;  // held by members that were lost, and have not said since what they hold
  std::set<NodeId> said_all_;   // members that have told all they hold, and were not lost since
  std::set<NodeId> ever_said_;  // or were: what those had is away_
  std::set<NodeId> asked_all_;  // to say it
  std::deque<std::pair<NodeId, wire::peer::Lookup>> unanswered_lookups_;  // until all have
  std::map<NodeId, std::size_t> entries_of_;
  std::set<NodeId> too_many_;
  std::map<NodeId, std::uint64_t> given_out_;  // as the best

  bool open_ = false;
  std::deque<Question> waiting_;  // for open()
  PendingRequests<Found> asked_{/*first_ticket=*/1};
};

}  // namespace backstay::agent
