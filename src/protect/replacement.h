// Who takes a lost member's place in its parity group, so that the group can lose m members again:
// docs/protocol/parity.md, "When members are lost". Pure: no I/O, no clock, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "protect/groups.h"
#include "protect/takeover.h"

namespace backstay::protect {

// The plan_rebuild of this group makes the member's segment and parity; `by` keeps them.
struct Replacement {
  std::uint32_t group = 0;
  std::uint32_t member = 0;
  NodeId lost = 0;
  NodeId by = 0;
  bool operator==(const Replacement&) const = default;
};

struct ReplacementPlan {
  std::vector<Replacement> moves;       // by group, then member
  std::vector<std::uint32_t> gone;      // groups that lost more than m: nothing can be done here
  std::vector<std::uint32_t> weakened;  // groups for which no node is left that is not in them
  Groups after;                         // what could not be replaced names the lost node
};

// Time: nodes * (1 + lost members). Preconditions: as of take_over().
ReplacementPlan replace_members(const Groups& before, std::uint32_t parity,
                                const Survivors& survivors);

}  // namespace backstay::protect
