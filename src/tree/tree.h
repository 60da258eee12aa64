// One agent's part in the tree of a run (docs/protocol/tree.md): links to parent and children, and
// over them membership, barriers, facts, and the commit of each level.
//
// A pure state machine. The owner feeds it (messages, ticks, events on the node) and then takes its
// orders. It does no I/O, reads no clock and has no randomness but its seed: the same inputs give
// the same outputs. One thread.
//
// Time is counted in ticks of the owner, one every `tree.heartbeat_s`; an agent that was stopped
// for a minute has missed no tick by its own count, and clocks may differ.
//
// Bounds: arity + strangers_max children and one parent; one more peer while it looks for a parent.
// A message a tick to each of them. Memory does not grow with the number of nodes, except for the
// ranges of a NodeSet if nodes are missing or away from home.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "tree/commit.h"
#include "tree/facts.h"
#include "tree/failure_detector.h"
#include "tree/floors.h"
#include "tree/search.h"
#include "tree/shape.h"
#include "wire/tree_message.h"

namespace backstay::tree {

using wire::tree::Message;

struct Settings {
  RunId run = 0;
  std::uint32_t nodes = 1;  // the members of the run are 0 .. nodes-1
  std::uint32_t arity = 16;
  // Children beyond those that belong here; a leaf takes arity more.
  std::uint32_t strangers_max = 4;
  std::uint32_t answer_ticks = 2;  // without an answer to a join: not there
  std::uint32_t lost_ticks = 6;    // of silence after which a neighbour has gone
  // A path that is older is not believed; more than the tree is deep.
  std::uint32_t age_ticks_max = 30;
  std::uint32_t grace_ticks = 20;  // of absence after which a member is lost (failure_detector.h)
  std::uint32_t home_ticks = 8;    // how often a child of strangers asks at home
  std::function<std::string(NodeId)> address_of;  // of the members
};

struct Self {
  NodeId node = 0;                // nodes and above: a spare
  std::uint64_t incarnation = 0;  // larger than in any earlier life on this run
  std::string address;
};

// To do: send. The address is where to connect, if there is no connection to that node yet.
struct Send {
  Peer to;
  Message message;
};
struct Released {  // all members have entered the barrier `round` times
  std::uint64_t barrier = 0;
  std::uint64_t round = 0;
};
struct Membership {  // changes since the last one
  NodeSet lost;
  NodeSet back;
};
using Output = std::variant<Send, Record, Announce, Released, Fact, Membership>;

struct Links {
  std::optional<NodeId> parent;
  std::vector<NodeId> children;
  std::vector<NodeId> path;   // ancestors, root first
  std::uint64_t changes = 0;  // grows with each link that begins or ends
};

class Tree {
 public:
  // The limit of an address (host and port). A longer one is not taken, so that no message grows
  // too large.
  static constexpr std::size_t address_bytes_max = 300;

  // `remembered`: the versions of the job on the disk that still count.
  Tree(Settings settings, Self self, std::uint64_t seed, const std::vector<Remembered>& remembered);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void start();
  void tick();
  void receive(NodeId from, const Message& message);
  // The transport lost the peer, or could not reach it. Optional: silence shows it too, later.
  void unreachable(NodeId peer);
  // A clean end: neighbours look for each other at once.
  void leave();

  // The node's part of the version, of this run, is durable at this level. Precondition: level >=
  // local.
  void held(VersionNumber version, Level level);
  // The answer to Record: the record is on the disk.
  void recorded(RunVersion version, Level level);
  // For the `round`th time, from 1; the round before must have been released.
  void enter(std::uint64_t barrier, std::uint64_t round);
  // Every agent gets the fact, or at least the last one of a name. Errors: those of
  // Facts::publish().
  Status publish(const std::string& name, const std::string& value);

  std::vector<Output> take();

  // Parent and children as they are now.
  Links links() const;
  NodeId root() const { return path_.empty() ? self_.node : path_.front(); }
  const NodeSet& present() const { return present_; }  // at and below this node
  const NodeSet& lost() const { return failure_detector_.lost(); }
  Level announced(RunVersion version) const { return commit_.announced(version); }
  // The level that this node's part of the version has as far as others know: by its reports that
  // have arrived at a parent. Node 0 has no parent, and what it holds counts at once.
  Level told(VersionNumber version) const {
    return place_.ancestors.empty() ? commit_.held(version) : commit_.told(version);
  }
  const Fact* fact(NodeId node, const std::string& name) const { return facts_.find(node, name); }
  bool at_home() const;
  // True of the parent, of children and of the node that is being asked: connections to others may
  // be closed.
  bool needs(NodeId peer) const;
  std::size_t connections() const;

 private:
  // The state that both ends of a link keep.
  struct Neighbour {
    Peer peer;
    LinkId link;
    std::uint32_t silent_ticks = 0;
    std::uint64_t heard = 0;        // last change of theirs that has arrived
    std::uint64_t confirmed = 0;    // last change of ours that has arrived there
    std::uint64_t facts_heard = 0;  // the same for the logs of facts
    std::uint64_t facts_confirmed = 0;
    std::uint64_t facts_sent = 0;
  };
  struct Child : Neighbour {
    NodeSet present;
  };
  struct Attempt {
    Peer peer;
    LinkId link;
    std::uint32_t ticks = 0;
  };

  bool is_root() const { return !parent_.has_value(); }

  // Links: links.cc.
  void on(NodeId from, const wire::tree::Join& join);
  void on(NodeId from, const wire::tree::Accept& accept);
  void on(NodeId from, const wire::tree::Refuse& refuse);
  void on(NodeId from, const wire::tree::Leave& leave);
  std::optional<wire::tree::Why> reason_to_refuse(const wire::tree::Join& join) const;
  bool has_place_for(NodeId child) const;
  void refuse(NodeId from, const wire::tree::Join& join, wire::tree::Why why);
  void adopt(const wire::tree::Join& join);
  void accept(Neighbour parent, const std::vector<NodeId>& path, std::uint32_t age);
  bool may_follow(const std::vector<NodeId>& path, std::uint32_t age) const;
  NodeId roots_end() const;
  void seek();
  void ask(const Peer& peer);
  void lose_parent(bool silent);
  void drop_child(NodeId child);
  void drop_silent();
  Child* child_of(const LinkId& link);
  Neighbour* neighbour_of(const LinkId& link);
  Peer peer_of(NodeId node) const;
  std::vector<NodeId> path_below() const;

  // Messages over them: tree.cc.
  void on(NodeId from, const wire::tree::Report& report);
  void on(NodeId from, const wire::tree::Beat& beat);
  void on(NodeId from, const wire::tree::Facts& facts);
  void flush();
  void count_present();
  void tell_parent();
  void tell_child(Child& child);
  void tell_facts(Neighbour& neighbour);
  void tell_membership();
  void send(const Peer& to, Message message) { out_.emplace_back(Send{to, std::move(message)}); }

  Settings settings_;
  Self self_;
  Place place_;
  SplitMix64 random_;
  Changes changes_;
  Floors floors_;
  Commit commit_;
  Facts facts_;
  FailureDetector failure_detector_;
  Search search_;

  std::optional<Neighbour> parent_;
  std::map<NodeId, Child> children_;
  std::optional<Attempt> attempt_;
  std::uint64_t attempts_ = 0;
  std::uint64_t facts_published_ = 0;
  std::uint32_t home_in_ticks_ = 0;
  std::vector<NodeId> path_;    // ancestors, root first
  std::uint32_t path_age_ = 0;  // ticks since the root itself said so
  NodeId root_told_ = 0;
  NodeSet present_;
  NodeSet members_below_;  // of those
  std::uint64_t present_changed_ = 0;
  bool children_changed_ = true;  // since present_ was counted
  std::uint64_t links_changed_ = 0;
  std::optional<Peer> lower_root_;
  NodeSet lost_told_;
  std::vector<Output> out_;
};

}  // namespace backstay::tree
