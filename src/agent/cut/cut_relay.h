// One agent's part in the cuts of a run (docs/protocol/cut.md, "Carried by agents and the tree"):
// joins the reports of its ranks and of its children's agents and passes them to its parent, hands
// orders on, and knows who has asked. In the agent of node 0 it also owns the coordinator.
//
// A pure state machine: the owner feeds it (messages, the links of the tree, time) and then takes
// its orders. No I/O, no clock. One thread. What does not fit, or comes late, is ignored.
//
// Rules kept here:
// - A cut has the links that the agent had when it heard of it. Any change of them ends the cut for
//   all below this agent, at once, and the parent is told.
// - An agent that has ended a cut ignores what still comes of it.
// - A report goes up only when the coordinator can act on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "agent/cut/cut_lead.h"
#include "base/ids.h"
#include "base/result.h"
#include "cut/message.h"
#include "cut/report.h"
#include "tree/tree.h"
#include "wire/message.h"
#include "wire/peer_message.h"

namespace backstay::agent {

struct CutFacts {
  NodeId node = 0;
  std::string host;  // for messages
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint32_t local_ranks = 1;
  std::uint64_t incarnation = 0;
};

// To do.
struct TellRank {
  Rank rank = 0;
  wire::Message message;
};
struct TellAgent {
  NodeId node = 0;
  wire::peer::Message message;
};
struct HoldVersion {  // is not captured before LetVersionGo
  VersionNumber version = 0;
};
struct LetVersionGo {};
struct CutBegan {  // only in the agent of node 0
  cut::CutNumber cut = 0;
};
struct CutSaved {};  // all ranks have their images
struct CutGivenUp {
  VersionNumber version = 0;  // does not count; 0: none, or it may count all the same
  Code code = Code::again;
  std::string why;
};
struct CutEnded {  // only in the agent of node 0
  wire::CutOver how;
  double seconds = 0;
};
using CutOutput = std::variant<TellRank, TellAgent, HoldVersion, LetVersionGo, CutBegan, CutSaved,
                               CutGivenUp, CutEnded>;

class CutRelay {
 public:
  explicit CutRelay(CutFacts facts);

  // As they are now: before each of the calls below. `present`: members at and below this node.
  // `newest`: highest number of a version that was used here.
  void see(const tree::Links& links, std::uint32_t present, VersionNumber newest,
           std::uint64_t now_ns);

  // A rank of this node is connected, or is not any more.
  void joined(Rank rank);
  void left(Rank rank, bool goodbye);
  // A message of a rank, if it is about cuts; else nothing. An error ends its connection.
  std::optional<Status> receive(Rank rank, const wire::Message& message);

  // Messages of other agents.
  void on(NodeId from, const wire::AskCut& ask);
  void on(NodeId from, const wire::CutReport& report);
  void on(NodeId from, const wire::RefuseCut& refuse);
  void on(NodeId from, const wire::CutOrder& order);
  void on(NodeId from, const wire::CutOver& over);
  void on(NodeId from, const wire::peer::WhoIsLate& who);

  // For status: the cut that is under way, and for whom it waits.
  struct UnderWay {
    cut::CutNumber cut = 0;
    double seconds = 0;
    std::optional<Rank> rank;  // of this node
    std::string awaits;        // a sentence about that one, or about others
  };
  std::optional<UnderWay> under_way(std::uint64_t now_ns) const;

  // Reports what has changed, and does what time asks for.
  void pump();
  std::uint64_t wakes_at_ns() const { return lead_ ? lead_->wakes_at_ns() : never_ns; }

  std::vector<CutOutput> take() { return std::exchange(out_, {}); }

 private:
  bool is_parent(NodeId node) const { return links_.parent == node; }
  bool is_child(NodeId node) const;
  bool is_of_now(cut::CutNumber cut) const { return active_ && cut == cut_; }
  void ask(Rank rank, const wire::AskCut& ask);
  Status report(Rank rank, const wire::CutReport& part);
  void want(const wire::AskCut& ask);
  void ask_on();
  void carry_out(const cut::Order& order);
  bool begin(const cut::Order& order);
  void hand_on(const cut::Order& order);
  void report_on();
  bool is_worth_telling(const cut::Report& all) const;
  // What of it the coordinator acts on.
  cut::Report digest(const cut::Report& all) const;
  void find_late(std::uint32_t seconds);
  bool is_late(const cut::Report* report) const;
  bool is_behind(const cut::Report* report) const;
  std::optional<Rank> late_rank() const;
  std::optional<NodeId> late_child() const;
  std::string say_late(Rank rank, std::uint32_t seconds) const;
  void refuse(cut::CutNumber cut, Code code, const std::string& why);
  void fail(Code code, const std::string& why);
  void end(const wire::CutOver& over);
  void tell_who_asked(const wire::CutOver& over);
  void take_from_lead();
  void tell_all(const wire::Message& message);
  std::string missing() const;

  const CutFacts facts_;
  std::optional<CutLead> lead_;
  std::uint64_t now_ns_ = 0;

  tree::Links links_;
  std::uint32_t present_ = 0;
  VersionNumber newest_ = 0;
  std::set<Rank> ranks_;        // connected
  std::map<Rank, Error> gone_;  // and not back: why
  std::map<Rank, cut::ReportParts> parts_;
  std::map<NodeId, cut::ReportParts> child_parts_;
  cut::OrderParts order_parts_;

  cut::CutNumber cut_ = 0;  // the present one, or the last
  bool active_ = false;
  std::uint64_t began_ns_ = 0;
  cut::Order order_;  // the last one
  cut::Reports own_;
  cut::Reports below_;
  bool changed_ = false;             // since the last look
  std::optional<cut::Report> told_;  // digest of what the parent was told since the last order

  std::set<Rank> asked_;             // and have not heard of a cut that serves them
  std::set<Rank> serving_;           // the present cut serves them
  std::optional<wire::AskCut> ask_;  // to be passed on, until a cut serves it
  bool ask_sent_ = false;            // over the present links
  std::vector<CutOutput> out_;
};

}  // namespace backstay::agent
