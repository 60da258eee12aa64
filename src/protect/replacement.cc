#include "protect/replacement.h"

#include <algorithm>

#include "protect/takers.h"

namespace backstay::protect {
namespace {

void restore(std::uint32_t group, std::uint32_t parity, Takers& takers, ReplacementPlan& plan) {
  std::vector<NodeId>& members = plan.after[group];
  const auto lost =
      std::ranges::count_if(members, [&](NodeId node) { return !takers.is_alive(node); });
  if (lost > static_cast<std::ptrdiff_t>(parity)) {
    plan.gone.push_back(group);
    return;
  }
  for (std::uint32_t member = 0; member < members.size(); ++member) {
    if (takers.is_alive(members[member])) continue;
    const auto taker = takers.take(members, group);
    if (!taker) {
      plan.weakened.push_back(group);
      return;
    }
    plan.moves.push_back({group, member, members[member], *taker});
    members[member] = *taker;
  }
}

}  // namespace

ReplacementPlan replace_members(const Groups& before, std::uint32_t parity,
                                const Survivors& survivors) {
  ReplacementPlan plan{{}, {}, {}, before};
  Takers takers(survivors);
  for (const auto& members : before) {
    for (const NodeId node : members) takers.has_one(node);
  }
  for (std::uint32_t group = 0; group < before.size(); ++group) {
    restore(group, parity, takers, plan);
  }
  return plan;
}

}  // namespace backstay::protect
