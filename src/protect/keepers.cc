#include "protect/keepers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "protect/domains.h"
#include "protect/takeover.h"

namespace backstay::protect {

Result<std::vector<NodeId>> keepers_in_order(const PlacementFacts& facts,
                                             const std::vector<bool>& alive, NodeId segment) {
  BACKSTAY_ASSIGN(Placement before, place_replicas(facts));
  const Placement now = take_over(std::move(before), {facts.domains, alive, facts.seed});
  std::vector<NodeId> order;
  std::ranges::copy_if(now.of(segment), std::back_inserter(order),
                       [&](NodeId node) { return alive[node]; });

  const std::vector<std::uint32_t> domain_of = number_domains(facts.domains);
  std::vector<std::uint32_t> copies_in(domain_of.size(), 0);
  for (const NodeId node : order) ++copies_in[domain_of[node]];
  using StandIn = std::tuple<std::uint32_t, std::uint64_t, NodeId>;  // copies, draw, node
  std::vector<StandIn> stand_ins;
  for (NodeId node = 0; node < alive.size(); ++node) {
    if (!alive[node] || std::ranges::find(order, node) != order.end()) continue;
    SplitMix64 random(facts.seed + (std::uint64_t{segment} << 32) + node);
    stand_ins.emplace_back(copies_in[domain_of[node]], random.next(), node);
  }
  std::ranges::sort(stand_ins);
  for (const auto& [copies, draw, node] : stand_ins) order.push_back(node);
  return order;
}

}  // namespace backstay::protect
