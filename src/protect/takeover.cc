#include "protect/takeover.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "protect/takers.h"

namespace backstay::protect {
namespace {

// The living holder that is read least so far in this plan; the first in the row among equals.
class Sources {
 public:
  explicit Sources(std::size_t nodes) : reads_(nodes, 0) {}

  NodeId next(std::span<const NodeId> living) {
    const NodeId source =
        *std::ranges::min_element(living, {}, [&](NodeId node) { return reads_[node]; });
    ++reads_[source];
    return source;
  }

 private:
  std::vector<std::uint64_t> reads_;
};

std::vector<NodeId> living_in(std::span<const NodeId> row, const Takers& takers) {
  std::vector<NodeId> living;
  std::ranges::copy_if(row, std::back_inserter(living),
                       [&](NodeId node) { return takers.is_alive(node); });
  return living;
}

void restore(NodeId segment, Takers& takers, Sources& sources, TakeoverPlan& plan) {
  const std::span<NodeId> row = plan.after.of(segment);
  const std::vector<NodeId> living = living_in(row, takers);
  if (living.empty()) {
    plan.gone.push_back(segment);
    return;
  }
  for (NodeId& holder : row) {
    if (takers.is_alive(holder)) continue;
    const auto taker = takers.take(row, segment);
    if (!taker) {
      plan.weakened.push_back(segment);
      return;
    }
    plan.moves.push_back({segment, holder, sources.next(living), *taker});
    holder = *taker;
  }
}

}  // namespace

TakeoverPlan take_over(const Placement& before, const Survivors& survivors) {
  BACKSTAY_CHECK(survivors.alive.size() >= before.nodes());
  TakeoverPlan plan{{}, {}, {}, before};
  Takers takers(survivors);
  for (NodeId segment = 0; segment < before.nodes(); ++segment) {
    for (const NodeId holder : before.of(segment)) takers.has_one(holder);
  }
  Sources sources(survivors.alive.size());
  for (NodeId segment = 0; segment < before.nodes(); ++segment) {
    restore(segment, takers, sources, plan);
  }
  return plan;
}

}  // namespace backstay::protect
