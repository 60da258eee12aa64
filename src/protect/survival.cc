#include "protect/survival.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"

namespace backstay::protect {
namespace {

constexpr std::size_t losses_max = 3;
using Counts = std::array<std::uint64_t, losses_max + 1>;  // of sets of 0, 1, 2, 3 nodes
using NodeSet = std::vector<NodeId>;                       // in order, none twice

std::uint64_t choose(std::uint64_t n, std::uint64_t k) {
  if (k > n) return 0;
  std::uint64_t ways = 1;
  for (std::uint64_t i = 0; i < k; ++i) ways = ways * (n - i) / (i + 1);
  return ways;
}

std::uint64_t living_of(const std::vector<bool>& alive) {
  BACKSTAY_CHECK(alive.size() <= 3'000'000);  // choose(n, 3) * 3 fits 64 bits
  return static_cast<std::uint64_t>(std::ranges::count(alive, true));
}

// The sets of up to three nodes that hold all living copies of a segment, without those that
// contain a smaller one. A set of lost nodes is fatal if and only if it contains one of these.
class FatalSets {
 public:
  void add(const NodeSet& holders) {
    if (holders.size() <= losses_max) sets_.at(holders.size()).insert(holders);
  }

  void keep_smallest() {
    std::erase_if(sets_[2], [&](const NodeSet& set) { return contains_smaller(set); });
    std::erase_if(sets_[3], [&](const NodeSet& set) { return contains_smaller(set); });
  }

  // How many sets of `losses` of n nodes contain one of these.
  std::uint64_t count(std::uint64_t n, std::size_t losses) const {
    const std::uint64_t others = n - sets_[1].size();  // nodes that may be lost one at a time
    const std::uint64_t with_single = choose(n, losses) - choose(others, losses);
    if (losses == 1) return with_single;
    if (losses == 2) return with_single + sets_[2].size();
    return with_single + triples_with_pair(others) + sets_[3].size();
  }

  NodeSet smallest(std::size_t losses) const {
    for (std::size_t size = 1; size <= losses; ++size) {
      if (!sets_.at(size).empty()) return *sets_.at(size).begin();
    }
    return {};
  }

 private:
  bool contains_smaller(const NodeSet& set) const {
    const auto has_single = [&](NodeId node) { return sets_[1].contains({node}); };
    if (std::ranges::any_of(set, has_single)) return true;
    return set.size() == 3 &&
           (sets_[2].contains({set[0], set[1]}) || sets_[2].contains({set[0], set[2]}) ||
            sets_[2].contains({set[1], set[2]}));
  }

  // Each pair with each other node counts a triple with two pairs twice and one with three thrice;
  // paths of two pairs are one in the former and three in the latter.
  std::uint64_t triples_with_pair(std::uint64_t others) const {
    std::map<NodeId, NodeSet> partners;
    for (const NodeSet& pair : sets_[2]) {
      partners[pair[0]].push_back(pair[1]);
      partners[pair[1]].push_back(pair[0]);
    }
    std::uint64_t paths = 0;
    std::uint64_t triangles = 0;
    for (const auto& [node, all] : partners) paths += choose(all.size(), 2);
    for (const NodeSet& pair : sets_[2]) {
      for (const NodeId third : partners[pair[1]]) {
        triangles += third > pair[1] && sets_[2].contains({pair[0], third}) ? 1 : 0;
      }
    }
    return sets_[2].size() * (others - 2) - paths + triangles;
  }

  std::array<std::set<NodeSet>, losses_max + 1> sets_;
};

// Sets of lost members that a group tolerates, by size.
Counts borne(std::uint64_t living, std::uint64_t losses) {
  Counts counts{};
  for (std::size_t lost = 0; lost <= std::min<std::uint64_t>(losses, losses_max); ++lost) {
    counts.at(lost) = choose(living, lost);
  }
  return counts;
}

// Sets over both together.
Counts product(const Counts& a, const Counts& b) {
  Counts sum{};
  for (std::size_t i = 0; i <= losses_max; ++i) {
    for (std::size_t j = 0; i + j <= losses_max; ++j) sum.at(i + j) += a.at(i) * b.at(j);
  }
  return sum;
}

NodeSet living_members(const std::vector<NodeId>& members, const std::vector<bool>& alive) {
  NodeSet living;
  std::ranges::copy_if(members, std::back_inserter(living),
                       [&](NodeId node) { return alive[node]; });
  std::ranges::sort(living);
  return living;
}

}  // namespace

Survival survival_of(const Placement& placement, const std::vector<bool>& alive) {
  std::vector<std::vector<NodeId>> holders;
  for (NodeId segment = 0; segment < placement.nodes(); ++segment) {
    const auto row = placement.of(segment);
    holders.emplace_back(row.begin(), row.end());
  }
  return survival_of(holders, alive);
}

Survival survival_of(std::span<const std::vector<NodeId>> holders, const std::vector<bool>& alive) {
  const std::uint64_t living = living_of(alive);
  Survival survival;
  FatalSets fatal;
  for (NodeId segment = 0; segment < holders.size(); ++segment) {
    const NodeSet of_segment = living_members(holders[segment], alive);
    if (of_segment.empty()) survival.gone.push_back(segment);
    fatal.add(of_segment);
  }
  fatal.keep_smallest();
  for (std::size_t losses = 1; losses <= losses_max; ++losses) {
    LossCount& count = survival.of_nodes.at(losses - 1);
    count = {choose(living, losses), fatal.count(living, losses), {}};
    if (count.fatal > 0) count.example = fatal.smallest(losses);
  }
  return survival;
}

Survival survival_of(const Groups& groups, std::uint32_t parity, const std::vector<bool>& alive) {
  const std::uint64_t living = living_of(alive);
  Survival survival;
  Counts good{1, 0, 0, 0};
  std::uint64_t in_groups = 0;
  NodeSet weakest;  // one member more than tolerated, of the weakest group
  for (const auto& members : groups) {
    const NodeSet here = living_members(members, alive);
    const std::size_t dead = members.size() - here.size();
    if (dead > parity) {
      std::ranges::copy_if(members, std::back_inserter(survival.gone),
                           [&](NodeId node) { return !alive[node]; });
      continue;
    }
    const std::size_t fatal = parity - dead + 1;
    if (weakest.empty() || fatal < weakest.size()) {
      weakest.assign(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(fatal));
    }
    good = product(good, borne(here.size(), parity - dead));
    in_groups += here.size();
  }
  good = product(good, borne(living - in_groups, losses_max));  // spares
  for (std::size_t losses = 1; losses <= losses_max; ++losses) {
    LossCount& count = survival.of_nodes.at(losses - 1);
    count = {choose(living, losses), choose(living, losses) - good.at(losses), {}};
    if (count.fatal > 0) count.example = weakest;
  }
  return survival;
}

namespace {

// The segments that the living nodes can supply.
class Reachable {
 public:
  Reachable(std::span<const std::vector<NodeId>> holders, std::span<const ParityThere> groups)
      : holders_(holders), groups_(groups) {}

  NodeSet lost(const std::vector<bool>& alive) const {
    const auto lives = [&](NodeId node) { return alive[node]; };
    std::vector<bool> there;
    for (const auto& of_segment : holders_) there.push_back(std::ranges::any_of(of_segment, lives));
    std::vector<bool> back = there;
    for (const ParityThere& group : groups_) {
      std::vector<bool> parity;
      for (const auto& of_member : group.holders) {
        parity.push_back(std::ranges::any_of(of_member, lives));
      }
      for (std::size_t member = 0; member < group.segments.size(); ++member) {
        const NodeId segment = group.segments[member];
        if (!there[segment]) back[segment] = back[segment] || rebuilt(group, member, there, parity);
      }
    }
    NodeSet all;
    for (NodeId segment = 0; segment < back.size(); ++segment) {
      if (!back[segment]) all.push_back(segment);
    }
    return all;
  }

 private:
  // Every stripe with data of `member` has lost no more blocks than it has of parity.
  static bool rebuilt(const ParityThere& group, std::size_t member, const std::vector<bool>& there,
                      const std::vector<bool>& parity) {
    const std::size_t size = group.segments.size();
    for (std::size_t stripe = 0; stripe < size; ++stripe) {
      if ((member + size - stripe) % size < group.blocks) continue;
      std::size_t lost = 0;
      for (std::size_t i = 0; i < size; ++i) {
        const bool is_parity = (i + size - stripe) % size < group.blocks;
        lost += (is_parity ? parity[i] : there[group.segments[i]]) ? 0 : 1;
      }
      if (lost > group.blocks) return false;
    }
    return true;
  }

  const std::span<const std::vector<NodeId>> holders_;
  const std::span<const ParityThere> groups_;
};

// Removes `losses` more of the living nodes, from `first` on.
void try_losses(const Reachable& reachable, std::vector<bool>& alive, std::size_t losses,
                NodeId first, NodeSet& taken, LossCount& count) {
  if (losses == 0) {
    ++count.sets;
    if (reachable.lost(alive).empty()) return;
    if (count.fatal++ == 0) count.example = taken;
    return;
  }
  for (NodeId node = first; node < alive.size(); ++node) {
    if (!alive[node]) continue;
    alive[node] = false;
    taken.push_back(node);
    try_losses(reachable, alive, losses - 1, node + 1, taken, count);
    taken.pop_back();
    alive[node] = true;
  }
}

}  // namespace

Survival survival_of(std::span<const std::vector<NodeId>> holders,
                     std::span<const ParityThere> groups, const std::vector<bool>& alive) {
  BACKSTAY_CHECK(living_of(alive) <= 128);
  const Reachable reachable(holders, groups);
  Survival survival;
  survival.gone = reachable.lost(alive);
  if (!survival.gone.empty()) return survival;
  std::vector<bool> left = alive;
  NodeSet taken;
  for (std::size_t losses = 1; losses <= losses_max; ++losses) {
    try_losses(reachable, left, losses, 0, taken, survival.of_nodes.at(losses - 1));
  }
  return survival;
}

std::string Survival::text() const {
  if (!gone.empty())
    return fmt::format("the data of {} node{} is lost", gone.size(), gone.size() == 1 ? "" : "s");
  std::string line;
  for (std::size_t i = 0; i < of_nodes.size(); ++i) {
    const LossCount& count = of_nodes.at(i);
    if (count.sets == 0) break;
    line += fmt::format(
        "{}any {}{}: ", i == 0 ? "" : "; ", i + 1,
        i == 0 ? fmt::format(" of {} node{}", count.sets, count.sets == 1 ? "" : "s") : "");
    line += count.fatal == 0 ? "yes"
                             : fmt::format("{} of {} sets lose data, such as {{{}}}", count.fatal,
                                           count.sets, fmt::join(count.example, ", "));
  }
  return line;
}

}  // namespace backstay::protect
