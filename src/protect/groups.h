// Groups of nodes that keep each other's parity, spread over failure domains:
// docs/protocol/parity.md, "Groups". Pure: no I/O, no clock, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/parity_shape.h"
#include "base/result.h"

namespace backstay::protect {

using Groups = std::vector<std::vector<NodeId>>;

// The groups, by node number; the members in their order on the ring. A group of g nodes has the
// shape {g - m, m}. `domains`: label of node 0, 1, ..; empty: a domain of its own.
// Errors: invalid (a shape out of range), few_nodes (fewer than k + m). The message says what to
// do.
Result<Groups> make_groups(ParityShape shape, std::span<const std::string> domains);

// One line: in which groups nodes share a domain, and which groups would not survive its loss.
// Empty if all groups are spread. Precondition: one label for each node that a group names.
std::string groups_relaxed(const Groups& groups, std::uint32_t parity,
                           std::span<const std::string> domains);

}  // namespace backstay::protect
