// Why versions of the present run do not reach a level for now, on whichever of its nodes
// (docs/protocol/tree.md, "What a node cannot do"): what each node publishes as fact `lacks`, and
// what is known from those of all.
//
// It decides nothing: who waits for a level is answered with the reason instead of at the end of
// his patience.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tree/node_set.h"

namespace backstay::agent {

// One node keeps one version from one level.
struct Blocker {
  VersionNumber version = 0;
  Level level = Level::none;
  Code code = Code::ok;
  std::string why;
  bool operator==(const Blocker&) const = default;
};

struct NodeBlockers {
  std::string host;  // for people
  std::vector<Blocker> blockers;
  bool operator==(const NodeBlockers&) const = default;
};

inline constexpr const char* blockers_fact = "lacks";

// As many as are published: those of the newest versions, lower levels first, reasons cut short.
std::vector<Blocker> newest_of(std::vector<Blocker> blockers);
// The fact's value, within the bounds of a fact.
std::string encode(NodeBlockers blockers);
// Errors: invalid (not such a value).
Result<NodeBlockers> decode_blockers(const std::string& value);

class Blockers {
 public:
  // No version gets further for all while one of these is so: `why` of a member that cannot be
  // spoken with and will not be by itself (agent/group/peers.h), and members that are lost. Answer
  // whether something has changed.
  bool cut_off(NodeId node, std::optional<Error> why);
  bool lost(const tree::NodeSet& nodes, std::uint64_t now_ns);
  const tree::NodeSet& lost() const { return lost_; }
  // When members were lost, or came back, last; 0: never. A blocker is not the last word soon after
  // it: a lost member may come back, and one that has come back needs time to make up for what it
  // missed.
  std::uint64_t lost_changed_ns() const { return lost_changed_ns_; }

  // All that this node lacks now. Answers the versions for which something has changed.
  std::set<VersionNumber> learn(NodeId node, NodeBlockers blockers);
  // What keeps the version, which has level `has`, from reaching `wanted`.
  std::optional<Error> of(VersionNumber version, Level has, Level wanted) const;
  // Of the newest version that this node lacks something of; null: of none.
  const Blocker* newest(NodeId node) const;
  // The same in a line; "": nothing.
  std::string text(NodeId node) const;
  // Another run begins.
  void clear() { *this = {}; }

 private:
  std::optional<Error> of_all(VersionNumber version, Level has) const;

  std::map<NodeId, NodeBlockers> nodes_;
  std::map<NodeId, Error> cut_off_;
  tree::NodeSet lost_;
  std::uint64_t lost_changed_ns_ = 0;  // 0: never
};

}  // namespace backstay::agent
