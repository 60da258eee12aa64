// Would a version survive the loss of any 1, 2 or 3 of the nodes that live? Counted exactly, for
// any number of nodes: docs/protocol/placement.md, "What would survive". Pure: no I/O, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protect/groups.h"
#include "protect/placement.h"

namespace backstay::protect {

// Counts the sets of n living nodes, and those of them whose loss would lose a segment.
struct LossCount {
  std::uint64_t sets = 0;  // 0: there are not as many nodes
  std::uint64_t fatal = 0;
  std::vector<NodeId> example;  // a fatal set, in order; empty if there is none
};

struct Survival {
  std::vector<NodeId> gone;           // segments that are lost already
  std::array<LossCount, 3> of_nodes;  // of 1, 2, 3; without meaning if `gone` is not empty

  // One line: "any 1 of 64 nodes: yes; any 2: 31 of 2016 sets lose data, such as {4, 17}; ..".
  std::string text() const;
};

// `alive`: one flag a node, spares included. Preconditions: at most 3 million nodes, and a flag for
// every node that is named. Time: linear in nodes, but for sorting.
Survival survival_of(const Placement& placement, const std::vector<bool>& alive);
// `holders`: the nodes that have each segment, in any order, none twice.
Survival survival_of(std::span<const std::vector<NodeId>> holders, const std::vector<bool>& alive);

// The parity of one group's segments that exists (docs/protocol/parity.md, "Stripes").
struct ParityThere {
  std::vector<NodeId> segments;              // of the members, in the order of the ring
  std::uint32_t blocks = 0;                  // of parity that each member made; fewer than members
  std::vector<std::vector<NodeId>> holders;  // of each member's
};
// With parity of some groups beside the copies; by trying every set, so for at most 128 living
// nodes.
Survival survival_of(std::span<const std::vector<NodeId>> holders,
                     std::span<const ParityThere> groups, const std::vector<bool>& alive);
// A group of g nodes has the shape {g - parity, parity}.
Survival survival_of(const Groups& groups, std::uint32_t parity, const std::vector<bool>& alive);

}  // namespace backstay::protect
