// A run whose cuts are carried by agents (docs/protocol/cut.md, "Carried by agents and the tree"),
// under one seed: ranks that are cut::Rank machines under random programs (tests/cut), agents that
// are real trees and real relays, connections that lose their ends, agents that die and come back.
//
// What an agent does with a version is played in a few lines: it holds the images of its ranks, and
// what is sealed stays on its disk. A version of which every disk has its part must be a cut.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "agent/cut/cut_relay.h"
#include "base/random.h"
#include "cut/chaos.h"
#include "tree/tree.h"

namespace backstay::agent::test {

struct Limits {
  std::uint32_t nodes = 16;
  std::uint32_t ranks_a_node = 3;
  std::uint32_t calls = 200;
  std::uint32_t asks = 3;
  std::uint32_t faults = 0;  // at most
  bool ranks_die = false;
};

struct Outcome {
  std::string broken;
  std::uint32_t complete = 0;  // versions
  std::uint32_t saved = 0, given_up = 0;
  std::uint32_t faults = 0;
  std::set<std::string> reasons;
};

class CarriedRun {
 public:
  CarriedRun(std::uint64_t seed, const Limits& limits);
  Outcome play();

 private:
  using Images = std::map<cut::RankNumber, cut::World::Image>;
  struct Lost {};  // the end of a connection
  using Packet = std::variant<tree::Message, wire::peer::Message, Lost>;
  struct Agent {
    std::unique_ptr<tree::Tree> tree;  // null: it is dead
    std::unique_ptr<CutRelay> relay;
    std::uint64_t incarnation = 0;
    VersionNumber newest = 0;
    VersionNumber held = 0;
    std::set<VersionNumber> given_up;
    std::map<VersionNumber, Images> ended;  // not sealed
    std::map<VersionNumber, Images> disk;
  };

  NodeId node_of(cut::RankNumber rank) const { return rank / limits_.ranks_a_node; }
  std::vector<cut::RankNumber> ranks_of(NodeId node) const;
  std::uint32_t ranks() const { return limits_.nodes * limits_.ranks_a_node; }

  void start(NodeId node);
  void settle();
  void one_step();
  bool deliver_one();
  void tick();
  void fault(bool at_0);
  void kill(NodeId node);
  void break_connection(NodeId one, NodeId other);
  void lose_ranks_of(NodeId node);
  void find_ranks_of(NodeId node);
  void reconnect(NodeId node);
  void kill_rank();
  void send(NodeId from, NodeId to, Packet packet);
  void see(NodeId node);
  void collect(NodeId node);
  void on(NodeId node, const TellRank& it);
  void on(NodeId node, const TellAgent& it) { send(node, it.node, it.message); }
  void on(NodeId node, const HoldVersion& it);
  void on(NodeId node, const LetVersionGo& it);
  void on(NodeId, const CutBegan&) {}
  void on(NodeId, const CutSaved&) {}
  void on(NodeId node, const CutGivenUp& it);
  void on(NodeId, const CutEnded& it);
  void reported(cut::RankNumber rank, const cut::Report& report);
  void imaged(cut::RankNumber rank);
  void seal(NodeId node, VersionNumber version);
  void look_at(VersionNumber version);
  void ask(cut::RankNumber rank);
  bool is_at_rest() const;
  void judge();

  const Limits limits_;
  SplitMix64 random_;
  std::uint32_t arity_ = 2;
  std::uint64_t timeout_ms_ = 0;
  cut::Scene scene_;
  std::unique_ptr<cut::World> world_;
  std::vector<Agent> agents_;
  std::map<std::pair<NodeId, NodeId>, std::deque<Packet>> net_;
  std::set<std::pair<NodeId, NodeId>> deaf_;  // the first has not noticed that its connection ended
  std::map<cut::RankNumber, cut::OrderParts> parts_;
  std::set<cut::RankNumber> wanting_;
  std::set<NodeId> unfound_;  // agents whose ranks have not come back
  std::uint64_t now_ns_ = 0;
  std::uint64_t lives_ = 0;
  std::uint32_t asks_ = 0, faults_ = 0;
  std::set<VersionNumber> complete_;
  bool died_ = false;
  Outcome outcome_;
};

}  // namespace backstay::agent::test
