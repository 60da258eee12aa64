#include "protect/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "protect/domains.h"

namespace backstay::protect {
namespace {

constexpr int sweeps = 5;

using Domains = std::vector<std::uint32_t>;

// Step 1: a random order in which the nodes of a domain are adjacent.
std::vector<NodeId> random_order(const Domains& domains, SplitMix64& random) {
  std::vector<NodeId> order(domains.size());
  std::iota(order.begin(), order.end(), NodeId{0});
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i + 1))]);
  }
  constexpr auto unseen = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> rank(domains.size(), unseen);  // of a domain, by its first node
  std::uint32_t seen = 0;
  for (const NodeId node : order) {
    if (rank[domains[node]] == unseen) rank[domains[node]] = seen++;
  }
  std::vector<std::uint32_t> begin(seen + 1, 0);
  for (const std::uint32_t domain : domains) ++begin[rank[domain] + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<NodeId> grouped(order.size());
  for (const NodeId node : order) grouped[begin[rank[domains[node]]]++] = node;
  return grouped;
}

// Steps 2 and 3, among places of the order: row p begins with p itself.
class Swapping {
 public:
  Swapping(Placement& table, Domains domains) : table_(table), domains_(std::move(domains)) {}

  void shift() {
    const std::uint64_t nodes = table_.nodes();
    for (std::uint32_t place = 0; place < nodes; ++place) {
      for (std::uint64_t j = 0; j < table_.copies(); ++j) {
        table_.of(place)[j] = static_cast<NodeId>((place + j * nodes / table_.copies()) % nodes);
      }
    }
  }

  void sweep(SplitMix64& random) {
    for (std::uint32_t place = 0; place < table_.nodes(); ++place) {
      for (std::uint32_t j = 1; j < table_.copies(); ++j) {
        std::uint32_t other = random.below(table_.nodes() - 1);
        if (other >= place) ++other;
        NodeId& mine = table_.of(place)[j];
        NodeId& theirs = table_.of(other)[j];
        if (may_swap(place, other, j)) std::swap(mine, theirs);
      }
    }
  }

 private:
  // How the copies of `segment`, without column j, overlap with `holder`.
  struct Shared {
    bool holder = false;  // it has a copy already
    int domain = 0;       // copies in its domain
  };

  Shared shared(NodeId segment, std::uint32_t j, NodeId holder) const {
    Shared found;
    const auto row = std::as_const(table_).of(segment);
    for (std::uint32_t k = 0; k < row.size(); ++k) {
      if (k == j) continue;
      found.holder |= row[k] == holder;
      found.domain += domains_[row[k]] == domains_[holder] ? 1 : 0;
    }
    return found;
  }

  // Lines 11 to 17, where "already contains" also holds for the domain: the number of pairs of
  // copies in one domain must not grow.
  bool may_swap(NodeId one, NodeId two, std::uint32_t j) const {
    const NodeId of_one = table_.of(one)[j];
    const NodeId of_two = table_.of(two)[j];
    const Shared one_takes = shared(one, j, of_two);
    const Shared two_takes = shared(two, j, of_one);
    if (one_takes.holder || two_takes.holder) return false;
    const int pairs_before = shared(one, j, of_one).domain + shared(two, j, of_two).domain;
    return one_takes.domain + two_takes.domain <= pairs_before;
  }

  Placement& table_;
  Domains domains_;  // of places
};

template <typename Values>
std::string first_of(const Values& values) {
  constexpr std::size_t shown = 8;
  const std::span some(values.data(), std::min(values.size(), shown));
  return fmt::format("{}{}", fmt::join(some, ", "), values.size() > shown ? ", .." : "");
}

}  // namespace

Placement::Placement(std::uint32_t nodes, std::uint32_t copies)
    : nodes_(nodes), copies_(copies), holders_(std::size_t{nodes} * copies) {}

Result<Placement> place_replicas(const PlacementFacts& facts) {
  const auto nodes = static_cast<std::uint32_t>(facts.domains.size());
  if (facts.replicas >= nodes) {
    return Error(
        Code::few_nodes,
        fmt::format("{} replicas of each node's data need at least {} nodes, there are {}: "
                    "lower protect.replicas or start on more nodes",
                    facts.replicas, std::uint64_t{facts.replicas} + 1, nodes));
  }
  SplitMix64 random(facts.seed);
  const Domains domains = number_domains(facts.domains);
  const std::vector<NodeId> order = random_order(domains, random);
  Domains domain_of_place(nodes);
  for (std::uint32_t place = 0; place < nodes; ++place)
    domain_of_place[place] = domains[order[place]];

  Placement places(nodes, facts.replicas + 1);
  Swapping swapping(places, std::move(domain_of_place));
  swapping.shift();
  for (int i = 0; i < sweeps; ++i) swapping.sweep(random);

  Placement placement(nodes, facts.replicas + 1);
  for (std::uint32_t place = 0; place < nodes; ++place) {
    std::ranges::transform(places.of(place), placement.of(order[place]).begin(),
                           [&](std::uint32_t holder) { return order[holder]; });
  }
  return placement;
}

Relaxation relaxation(const Placement& placement, std::span<const std::string> domains) {
  const Domains numbers = number_domains(domains);
  Relaxation found;
  std::vector<std::uint32_t> row;
  for (NodeId node = 0; node < placement.nodes(); ++node) {
    row.clear();
    for (const NodeId holder : std::as_const(placement).of(node)) row.push_back(numbers[holder]);
    std::ranges::sort(row);
    if (std::ranges::adjacent_find(row) != row.end()) found.sharing.push_back(node);
    if (row.size() > 1 && row.front() == row.back()) found.exposed.push_back(node);
  }
  if (found.sharing.empty()) return found;
  std::vector<std::uint32_t> nodes_in(domains.size(), 0);
  for (std::size_t node = 0; node < domains.size(); ++node) {
    const std::uint32_t nodes = ++nodes_in[numbers[node]];
    if (nodes <= found.largest_domain_nodes) continue;
    found.largest_domain = domains[node];
    found.largest_domain_nodes = nodes;
  }
  return found;
}

std::string Relaxation::text() const {
  if (sharing.empty()) return {};
  std::string line = fmt::format(
      "copies of one node's data should lie in different failure domains, but domain \"{}\" has {} "
      "nodes: relaxed for {} nodes ({})",
      largest_domain, largest_domain_nodes, sharing.size(), first_of(sharing));
  if (!exposed.empty()) {
    line += fmt::format("; for {} of them ({}) one domain has all copies", exposed.size(),
                        first_of(exposed));
  }
  return line;
}

}  // namespace backstay::protect
