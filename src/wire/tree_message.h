// The messages of the tree of agents (docs/protocol/tree.md), as structs. src/tree says what they
// mean and when they are sent; nothing here does I/O.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/limits.h"

namespace backstay::wire::tree {

inline constexpr std::uint16_t protocol_version = 1;

// An agent and its address.
struct Peer {
  NodeId node = 0;
  std::string address;
  bool operator==(const Peer&) const = default;
};

// The nodes first .. first+count-1.
struct Range {
  NodeId first = 0;
  std::uint32_t count = 0;
  bool operator==(const Range&) const = default;
};

// One child under one parent, once: a child that joins again gets a new one. Both sides name it in
// each message.
struct LinkId {
  NodeId child = 0;
  std::uint64_t incarnation = 0;                    // of the child
  std::uint64_t attempt = 0;                        // counts the joins of this incarnation
  auto operator<=>(const LinkId&) const = default;  // NOLINT: <=> is no 0
};

// The kinds of counts: a value of each member that only grows.
enum class Kind : std::uint32_t {
  // Number: version; value: level that the node holds on its side.
  held = 1,
  // Number: version; value: level of which the node has the commit record on its disk.
  recorded = 2,
  // Number: the barrier's; value: how often the node has entered it.
  barrier = 3,
};
struct Key {
  std::uint32_t kind = 0;
  RunId run = 0;  // of the version
  std::uint64_t number = 0;
  auto operator<=>(const Key&) const = default;  // NOLINT: <=> is no 0
};

// "Each of `nodes` has reached `lowest`, and each member of the run `floor`."
struct Row {
  Key key;
  std::uint64_t floor = 0;
  std::uint64_t lowest = 0;
  std::vector<Range> nodes;
};
struct Floor {
  Key key;
  std::uint64_t floor = 0;
};

struct Fact {
  NodeId node = 0;                // the publisher
  std::uint64_t incarnation = 0;  // of the publisher
  std::uint64_t sequence = 0;     // a later fact of the same name replaces an earlier one
  std::string name;
  std::string value;
};

// child -> parent
struct Join {
  LinkId link;
  RunId run = 0;
  std::uint32_t nodes = 0;  // members of the run
  std::uint32_t arity = 0;
  NodeId below = 0;     // only into a tree whose root has a lower number
  std::string address;  // where the child is reached
};
struct Report {
  LinkId link;
  std::uint64_t change = 0;    // the child's last; all after what the parent has seen is in here
  std::uint64_t seen = 0;      // last change of the parent that has arrived
  std::vector<Range> present;  // nodes at and below the child; empty: as before
  std::vector<Row> rows;
  std::uint64_t facts_seen = 0;   // place in the parent's log of facts up to which all have arrived
  std::vector<Peer> lower_roots;  // roots with lower numbers than ours, to merge with
};

// parent -> child
struct Accept {
  LinkId link;
  std::vector<NodeId> path;  // the child's ancestors, root first
  std::uint32_t age = 0;     // ticks since the root itself said so
};
enum class Why : std::uint32_t {
  full = 1,         // no place left: ask those in `instead`
  own_subtree = 2,  // the child is an ancestor of the one it asked
  higher_root = 3,  // the root has no lower number than `below`
  too_deep = 4,
  other_run = 5,  // another run, or other numbers of nodes or arity
};
struct Refuse {
  LinkId link;
  std::uint32_t why = 0;
  std::vector<Peer> instead;
};
struct Beat {
  LinkId link;
  std::uint64_t change = 0;
  std::uint64_t seen = 0;
  std::vector<NodeId> path;
  std::uint32_t age = 0;
  std::vector<Floor> floors;
  bool lost_changed = false;
  std::vector<Range> lost;  // members that are taken for dead, if lost_changed
  std::uint64_t facts_seen = 0;
};

// either way
struct Facts {  // all facts at the places after+1 .. upto of the sender's log
  LinkId link;
  std::uint64_t after = 0;
  std::uint64_t upto = 0;
  std::vector<Fact> facts;
};
struct Leave {
  LinkId link;
};

// The order is the type number on the wire, from 1: append only.
using Message = std::variant<Join, Accept, Refuse, Report, Beat, Facts, Leave>;

// One packet, as wire::encode(). Errors: too_large, invalid.
Result<Buffer> encode(const Message& message);
// As wire::decode(). Errors: protocol, invalid.
Result<Message> decode(Bytes packet);

}  // namespace backstay::wire::tree
