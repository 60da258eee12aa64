// Chooses the nodes that take over the copies of lost nodes, so that every segment has all its
// copies again. Rules: docs/protocol/placement.md, "When nodes are lost". Pure: no I/O, no clock,
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protect/placement.h"

namespace backstay::protect {

struct Survivors {
  std::vector<std::string> domains;  // of every node, with spares behind the placement's nodes
  std::vector<bool> alive;           // one a node
  std::uint64_t seed = 0;
};

// The placement with the takers in place of the lost nodes. A lost node stays named if no copy
// lives, or if too few nodes live to make all copies again. Time: nodes * (1 + copies to be made
// again).
// Preconditions: every holder in the placement has a domain; as many domains as alive flags.
Placement take_over(Placement placement, const Survivors& survivors);

}  // namespace backstay::protect
