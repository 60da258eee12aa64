#include "protect/takers.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/random.h"
#include "protect/domains.h"

namespace backstay::protect {

Takers::Takers(const Survivors& survivors)
    : survivors_(survivors),
      domains_(number_domains(survivors.domains)),
      kept_(survivors.alive.size(), 0) {
  BACKSTAY_CHECK(survivors.domains.size() == survivors.alive.size());
}

std::optional<NodeId> Takers::take(std::span<const NodeId> row, std::uint32_t row_number) {
  using Cost = std::tuple<std::ptrdiff_t, std::uint64_t, std::uint64_t>;
  std::optional<NodeId> best;
  Cost least{};
  for (NodeId node = 0; node < kept_.size(); ++node) {
    if (!is_alive(node) || std::ranges::count(row, node) > 0) continue;
    const std::uint64_t seed = survivors_.seed + (std::uint64_t{row_number} << 32) + node;
    const Cost cost{living_in_domain_of(node, row), kept_[node], SplitMix64(seed).next()};
    if (best && cost >= least) continue;
    best = node;
    least = cost;
  }
  if (best) ++kept_[*best];
  return best;
}

std::ptrdiff_t Takers::living_in_domain_of(NodeId node, std::span<const NodeId> row) const {
  return std::ranges::count_if(
      row, [&](NodeId other) { return is_alive(other) && domains_[other] == domains_[node]; });
}

}  // namespace backstay::protect
