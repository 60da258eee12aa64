// The value that every member has reached: the one mechanism below commits and barriers.
//
// Under a key each member has a value that only grows. The floor of a key is a number that every
// member has reached. It is found with rows: (nodes, lowest) says that each of these nodes has
// reached `lowest`. A node joins its own value and its children's rows into one row for its parent;
// a row that covers all members is a floor.
//
// Why it is right, whichever messages are lost, late, doubled or out of order, and whichever node
// is parent of which:
//  1. A value only grows, so a row that was true once stays true (the union of the nodes, the
//     minimum of the values).
//  2. Nodes are counted as a set, so a node that is reported twice, by an old and a new parent,
//     counts once.
//  3. A floor is a row that covers all members, so it stays true as well; the larger of two floors
//     is right.
// Forgetting any of it (a crash, a new parent, a limit) only makes the known floor too small. A
// crash must not take values back: a member that raises one has it on its disk, or the value does
// not need to last (barriers). Keys that the limit removed come back when their owners report them
// again.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tree/node_set.h"
#include "wire/tree_message.h"

namespace backstay::tree {

using wire::tree::Key;
using wire::tree::Kind;

// Numbers the changes of one node's state; a link remembers the last one that the other side has
// seen.
struct Changes {
  std::uint64_t latest = 0;
  std::uint64_t next() { return ++latest; }
};

class Floors {
 public:
  // Keys kept: 32 versions. Beyond that the version that changed longest ago is forgotten (most
  // likely one that was given up: its last part never came). Barriers are forgotten last, as a
  // program may wait at one for hours.
  static constexpr std::size_t keys_max = 64;
  // Ranges in a row; a longer row leaves nodes out, which delays and never harms.
  static constexpr std::size_t row_ranges_max = 64;

  // `nodes`: the members are 0 .. nodes-1. A node that is no member only passes messages on.
  Floors(NodeId self, std::uint32_t nodes, Changes& changes);

  // A repeated value is sent again, unless all members have reached it: its receiver may have
  // forgotten it.
  void raise_own(const Key& key, std::uint64_t value);
  void raise_floor(const Key& key, std::uint64_t floor);
  // A child's row, in place of its earlier one.
  void child_row(NodeId child, const wire::tree::Row& row);
  void drop_child(NodeId child);

  std::uint64_t floor(const Key& key) const;
  std::uint64_t own(const Key& key) const;
  // Call the first one when all rows go to a parent, the other one when it has answered that our
  // changes up to `seen` have arrived.
  void rows_sent();
  void rows_arrived(std::uint64_t seen);
  // What a parent has heard that this node has reached, at least: a row says less where nodes below
  // have reached less, and one that is on its way says nothing. 0: nothing.
  std::uint64_t told(const Key& key) const;
  // Rows for a parent, floors for a child, that have seen our changes up to `seen`.
  std::vector<wire::tree::Row> rows_since(std::uint64_t seen) const;
  std::vector<wire::tree::Floor> floors_since(std::uint64_t seen) const;

  // Floors that rose since the last call.
  std::vector<wire::tree::Floor> take_risen();
  // Keys whose row grew and covers all of `below` since the last call: worth a message at once.
  bool take_complete(const NodeSet& below);

 private:
  struct Part {
    std::uint64_t lowest = 0;
    NodeSet nodes;
    bool operator==(const Part&) const = default;
  };
  struct Entry {
    std::uint64_t own = 0;
    std::uint64_t said = 0;     // by the last row for a parent
    std::uint64_t said_at = 0;  // the change with which that row said so for the first time
    std::uint64_t told = 0;
    std::uint64_t floor = 0;
    std::uint64_t floor_changed = 0;
    std::map<NodeId, Part> children;
    Part joined;
    std::uint64_t row_changed = 0;
    bool fresh = false;  // the row grew since take_complete()
  };
  Entry& entry(const Key& key);
  void join(const Key& key, Entry& entry);
  void rise(const Key& key, Entry& entry, std::uint64_t floor);
  void make_room();

  NodeId self_;
  NodeSet members_;
  Changes& changes_;
  std::map<Key, Entry> entries_;
  std::vector<wire::tree::Floor> risen_;
};

}  // namespace backstay::tree
