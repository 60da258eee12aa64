// Who takes over what lost nodes kept, so that every segment has all its copies again. Rules:
// docs/protocol/placement.md, "When nodes are lost". Pure: no I/O, no clock, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protect/placement.h"

namespace backstay::protect {

// One copy to be made again.
struct Takeover {
  NodeId segment = 0;  // the node whose segment it is
  NodeId lost = 0;     // who had the copy
  NodeId from = 0;     // living holder to read from
  NodeId to = 0;       // who has it from now on
  bool operator==(const Takeover&) const = default;
};

struct TakeoverPlan {
  std::vector<Takeover> moves;  // by segment, then column
  std::vector<NodeId> gone;     // segments without a living copy: nothing can be done for them here
  std::vector<NodeId> weakened;  // segments for which too few nodes live to make all copies again
  Placement after;               // with the moves made; what could not be moved names the lost node
};

struct Survivors {
  std::vector<std::string> domains;  // of every node, with spares behind the placement's nodes
  std::vector<bool> alive;           // one a node
  std::uint64_t seed = 0;
};

// Time: nodes * (1 + copies to be made again).
// Preconditions: every holder in the placement has a domain; as many domains as alive flags.
TakeoverPlan take_over(const Placement& before, const Survivors& survivors);

}  // namespace backstay::protect
