// The place of each node in an undamaged tree: arithmetic on its number, so that no agent keeps or
// sends a list of all nodes.
//
// Numbers are given in preorder: a subtree is a range of numbers, whose first is its top; the rest
// is divided among `arity` children in parts that differ by one node at most. Depth:
// ceil(log_arity(nodes)) or one less. A parent's number is below its children's. Neighbours in
// number (which launchers give to neighbours in the machine) are neighbours in the tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace backstay::tree {

struct Place {
  std::uint32_t subtree = 1;      // nodes in it: node .. node+subtree-1
  std::vector<NodeId> ancestors;  // root first; empty for node 0
  std::vector<NodeId> children;
};

// Precondition: arity >= 2. A node beyond the members (a spare) gets a place too: below the member
// that its number modulo `nodes` names.
Place place_of(NodeId node, std::uint32_t nodes, std::uint32_t arity);

}  // namespace backstay::tree
