#include "protect/takeover.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "protect/domains.h"

namespace backstay::protect {
namespace {

class Takers {
 public:
  Takers(const Placement& before, const Survivors& survivors, TakeoverPlan& plan)
      : before_(before),
        survivors_(survivors),
        plan_(plan),
        domains_(number_domains(survivors.domains)),
        kept_(survivors.alive.size(), 0),
        reads_(survivors.alive.size(), 0) {
    for (NodeId segment = 0; segment < plan.after.nodes(); ++segment) {
      for (const NodeId holder : row(segment)) ++kept_[holder];
    }
  }

  void restore(NodeId segment) {
    const auto is_alive = [&](NodeId holder) { return survivors_.alive[holder]; };
    if (std::ranges::none_of(row(segment), is_alive)) {
      plan_.gone.push_back(segment);
      return;
    }
    for (NodeId& holder : plan_.after.of(segment)) {
      if (is_alive(holder)) continue;
      const NodeId taker = best_taker(segment);
      if (taker == nobody()) {
        plan_.weakened.push_back(segment);
        return;
      }
      plan_.moves.push_back({segment, holder, source(segment), taker});
      ++kept_[taker];
      holder = taker;
    }
  }

 private:
  std::span<const NodeId> row(NodeId segment) const {
    return std::as_const(plan_.after).of(segment);
  }
  NodeId nobody() const { return static_cast<NodeId>(survivors_.alive.size()); }

  // The living holder that is read least so far. A taker of this very plan is none yet.
  NodeId source(NodeId segment) {
    NodeId best = nobody();
    for (const NodeId holder : before_.of(segment)) {
      if (!survivors_.alive[holder]) continue;
      if (best == nobody() || reads_[holder] < reads_[best]) best = holder;
    }
    ++reads_[best];
    return best;
  }

  NodeId best_taker(NodeId segment) const {
    using Cost = std::tuple<std::ptrdiff_t, std::uint64_t, std::uint64_t>;
    NodeId best = nobody();
    Cost least{};
    for (NodeId node = 0; node < nobody(); ++node) {
      if (!survivors_.alive[node] || std::ranges::count(row(segment), node) > 0) continue;
      const Cost cost{living_in_domain_of(node, segment), kept_[node], lot(segment, node)};
      if (best != nobody() && cost >= least) continue;
      best = node;
      least = cost;
    }
    return best;
  }

  std::ptrdiff_t living_in_domain_of(NodeId node, NodeId segment) const {
    return std::ranges::count_if(row(segment), [&](NodeId holder) {
      return survivors_.alive[holder] && domains_[holder] == domains_[node];
    });
  }

  std::uint64_t lot(NodeId segment, NodeId node) const {
    return SplitMix64(survivors_.seed + (std::uint64_t{segment} << 32) + node).next();
  }

  const Placement& before_;
  const Survivors& survivors_;
  TakeoverPlan& plan_;
  std::vector<std::uint32_t> domains_;
  std::vector<std::uint64_t> kept_;   // copies, by node
  std::vector<std::uint64_t> reads_;  // of this plan, by node
};

}  // namespace

TakeoverPlan take_over(const Placement& before, const Survivors& survivors) {
  BACKSTAY_CHECK(survivors.domains.size() == survivors.alive.size());
  BACKSTAY_CHECK(survivors.alive.size() >= before.nodes());
  TakeoverPlan plan{{}, {}, {}, before};
  Takers takers(before, survivors, plan);
  for (NodeId segment = 0; segment < before.nodes(); ++segment) takers.restore(segment);
  return plan;
}

}  // namespace backstay::protect
