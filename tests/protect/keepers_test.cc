// The nodes to ask to keep a segment: first those that the placement names, then every other node
// once.
#include "protect/keepers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "protect/made_domains.h"
#include "protect/takeover.h"

namespace backstay::protect {
namespace {

using namespace test;

std::vector<NodeId> order(const PlacementFacts& facts, const std::vector<bool>& alive,
                          NodeId segment) {
  return keepers_in_order(facts, alive, segment).value();
}

TEST(Keepers, BeginWithThePlacement) {
  const PlacementFacts facts{7, 2, no_domains(9)};
  const Placement placement = place_replicas(facts).value();
  for (NodeId segment = 0; segment < 9; ++segment) {
    const auto row = placement.of(segment);
    const auto found = order(facts, std::vector<bool>(9, true), segment);
    ASSERT_EQ(found.size(), 9u);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), found.begin()));
    EXPECT_EQ(std::set(found.begin(), found.end()).size(), 9u);
  }
}

TEST(Keepers, AreTheLivingWithTheLostReplaced) {
  const PlacementFacts facts{7, 2, no_domains(9)};
  std::vector<bool> alive(9, true);
  alive[2] = alive[5] = false;
  const Placement now =
      take_over(place_replicas(facts).value(), {facts.domains, alive, facts.seed});
  for (NodeId segment = 0; segment < 9; ++segment) {
    const auto found = order(facts, alive, segment);
    ASSERT_EQ(found.size(), 7u);
    EXPECT_EQ(std::ranges::count(found, 2u) + std::ranges::count(found, 5u), 0);
    const auto row = now.of(segment);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), found.begin()));
  }
}

// Stand-ins of other domains before those of the same; and not the same one for all segments.
TEST(Keepers, StandInsLieElsewhereAndDiffer) {
  const Labels domains = {"a", "a", "a", "b", "b", "b", "c", "c", "c"};
  std::set<NodeId> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto found = order({seed, 1, domains}, std::vector<bool>(9, true), 0);
    const std::set<std::string> row = {domains[found[0]], domains[found[1]]};
    ASSERT_EQ(row.size(), 2u);
    for (std::size_t i = 2; i < 5; ++i) EXPECT_FALSE(row.contains(domains[found[i]])) << i;
    for (std::size_t i = 5; i < 9; ++i) EXPECT_TRUE(row.contains(domains[found[i]])) << i;
    first.insert(found[2]);
  }
  EXPECT_GT(first.size(), 3u);
}

TEST(Keepers, MoreReplicasThanNodesAreRefused) {
  const auto refused = keepers_in_order({1, 3, no_domains(3)}, std::vector<bool>(3, true), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::few_nodes);
}

}  // namespace
}  // namespace backstay::protect
