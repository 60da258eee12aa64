// The nodes to ask to keep a node's segment, in order: docs/protocol/placement.md, "Who is asked".
// Pure: no I/O, no clock, any thread.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "protect/placement.h"

namespace backstay::protect {

// The living nodes: first those of the segment's row, with the lost ones replaced as take_over()
// does; then all others as stand-ins. The segment's own node comes first, if it lives. Time: nodes
// * replicas, and a sort of the nodes.
// Precondition: one alive flag a domain. Errors: few_nodes (as place_replicas()).
Result<std::vector<NodeId>> keepers_in_order(const PlacementFacts& facts,
                                             const std::vector<bool>& alive, NodeId segment);

}  // namespace backstay::protect
