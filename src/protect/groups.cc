#include "protect/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "protect/domains.h"

namespace backstay::protect {
namespace {

// The most nodes of one domain among the members.
std::uint32_t most_of_one(const std::vector<NodeId>& members,
                          const std::vector<std::uint32_t>& domain_of) {
  std::vector<std::uint32_t> domains;
  for (const NodeId node : members) domains.push_back(domain_of[node]);
  std::ranges::sort(domains);
  std::uint32_t most = 0;
  std::uint32_t run = 0;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    run = i > 0 && domains[i] == domains[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

}  // namespace

Result<Groups> make_groups(ParityShape shape, std::span<const std::string> domains) {
  BACKSTAY_TRY(check_shape(shape));
  const std::size_t nodes = domains.size();
  if (nodes < shape.members()) {
    return Error(Code::few_nodes,
                 fmt::format("parity ({}, {}) needs at least {} nodes, there are {}: lower "
                             "protect.parity or start on more nodes",
                             shape.data, shape.parity, shape.members(), nodes));
  }
  const std::size_t count =
      std::min((nodes + shape.members() - 1) / shape.members(), nodes / (shape.parity + 1));
  const std::vector<std::uint32_t> domain_of = number_domains(domains);
  std::vector<NodeId> order(nodes);
  std::iota(order.begin(), order.end(), NodeId{0});
  std::ranges::stable_sort(order, {}, [&](NodeId node) { return domain_of[node]; });
  Groups groups(count);
  for (std::size_t place = 0; place < nodes; ++place) {
    groups[place % count].push_back(order[place]);
  }
  return groups;
}

std::string groups_relaxed(const Groups& groups, std::uint32_t parity,
                           std::span<const std::string> domains) {
  const std::vector<std::uint32_t> domain_of = number_domains(domains);
  std::size_t sharing = 0;
  std::size_t exposed = 0;
  for (const auto& members : groups) {
    const std::uint32_t most = most_of_one(members, domain_of);
    sharing += most > 1 ? 1 : 0;
    exposed += most > parity ? 1 : 0;
  }
  if (sharing == 0) return {};
  return fmt::format(
      "the nodes of a parity group should lie in different failure domains: relaxed for {} of {} "
      "groups, of which {} would not survive the loss of one domain (more than {} of their nodes)",
      sharing, groups.size(), exposed, parity);
}

}  // namespace backstay::protect
