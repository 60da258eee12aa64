#include "protect/takeover.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>

#include "base/check.h"
#include "base/random.h"
#include "protect/domains.h"

namespace backstay::protect {
namespace {

class Takers {
 public:
  explicit Takers(const Survivors& survivors)
      : survivors_(survivors),
        domains_(number_domains(survivors.domains)),
        kept_(survivors.alive.size(), 0) {
    BACKSTAY_CHECK(survivors.domains.size() == survivors.alive.size());
  }

  bool is_alive(NodeId node) const { return survivors_.alive[node]; }
  // Counts a copy that the node has already.
  void has_one(NodeId node) { ++kept_[node]; }

  // The living node outside `row`, the holders of the segment, with the fewest living nodes of the
  // row in its domain; among equals the one that keeps least; among equals by a draw from seed,
  // segment and node. nullopt: there is none. The copy is counted.
  std::optional<NodeId> take(std::span<const NodeId> row, NodeId segment) {
    using Cost = std::tuple<std::ptrdiff_t, std::uint64_t, std::uint64_t>;
    std::optional<NodeId> best;
    Cost least{};
    for (NodeId node = 0; node < kept_.size(); ++node) {
      if (!is_alive(node) || std::ranges::count(row, node) > 0) continue;
      const std::uint64_t seed = survivors_.seed + (std::uint64_t{segment} << 32) + node;
      const Cost cost{living_in_domain_of(node, row), kept_[node], SplitMix64(seed).next()};
      if (best && cost >= least) continue;
      best = node;
      least = cost;
    }
    if (best) ++kept_[*best];
    return best;
  }

 private:
  std::ptrdiff_t living_in_domain_of(NodeId node, std::span<const NodeId> row) const {
    return std::ranges::count_if(
        row, [&](NodeId other) { return is_alive(other) && domains_[other] == domains_[node]; });
  }

  const Survivors& survivors_;
  std::vector<std::uint32_t> domains_;
  std::vector<std::uint64_t> kept_;
};

void restore(NodeId segment, std::span<NodeId> row, Takers& takers) {
  const auto lives = [&](NodeId node) { return takers.is_alive(node); };
  if (std::ranges::none_of(row, lives)) return;
  for (NodeId& holder : row) {
    if (lives(holder)) continue;
    const auto taker = takers.take(row, segment);
    if (!taker) return;
    holder = *taker;
  }
}

}  // namespace

Placement take_over(Placement placement, const Survivors& survivors) {
  BACKSTAY_CHECK(survivors.alive.size() >= placement.nodes());
  Takers takers(survivors);
  for (NodeId segment = 0; segment < placement.nodes(); ++segment) {
    for (const NodeId holder : placement.of(segment)) takers.has_one(holder);
  }
  for (NodeId segment = 0; segment < placement.nodes(); ++segment) {
    restore(segment, placement.of(segment), takers);
  }
  return placement;
}

}  // namespace backstay::protect
