#include "protect/replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "protect/made_domains.h"
#include "protect/survival.h"

namespace backstay::protect {
namespace {

using backstay::test::replay;
using namespace test;

Survivors all_alive(const Labels& domains) {
  return {domains, std::vector<bool>(domains.size(), true), 1};
}

TEST(Replacement, ASpareTakesTheLostMembersPlace) {
  const Groups before = make_groups({3, 1}, no_domains(12)).value();
  Survivors survivors = all_alive(no_domains(13));
  survivors.alive[before[1][2]] = false;
  const ReplacementPlan plan = replace_members(before, 1, survivors);
  EXPECT_THAT(plan.moves, testing::ElementsAre(Replacement{1, 2, before[1][2], 12}));
  EXPECT_EQ(plan.after[1][2], 12u);
  EXPECT_EQ(survival_of(plan.after, 1, survivors.alive).of_nodes[0].fatal, 0u);
}

TEST(Replacement, WithoutSparesNodesOfOtherGroupsTakeOneEach) {
  const Labels racks = of_sizes({8, 8, 8, 8});
  const Groups before = make_groups({2, 2}, racks).value();
  Survivors survivors = all_alive(racks);
  for (NodeId node = 0; node < 8; ++node) survivors.alive[node] = false;
  const ReplacementPlan plan = replace_members(before, 2, survivors);
  std::set<NodeId> takers;
  for (const Replacement& move : plan.moves) takers.insert(move.by);
  EXPECT_EQ(plan.moves.size(), 8u);
  EXPECT_EQ(takers.size(), 8u);
  EXPECT_TRUE(plan.gone.empty() && plan.weakened.empty());
}

TEST(Replacement, PrefersANodeOfADomainThatTheGroupHasNot) {
  const Labels labels{"a", "b", "c", "a", "b", "d"};  // two spares, of which d is the better
  const Groups before = make_groups({3, 1}, of_sizes({1, 1, 1, 1})).value();
  Survivors survivors = all_alive(labels);
  survivors.alive[3] = false;
  EXPECT_EQ(replace_members(before, 1, survivors).moves.at(0).by, 5u);
}

TEST(Replacement, NamesGroupsThatAreGoneOrWeakened) {
  const Groups before = make_groups({3, 1}, no_domains(8)).value();
  Survivors survivors = all_alive(no_domains(8));
  survivors.alive[before[0][0]] = survivors.alive[before[0][1]] = false;
  EXPECT_THAT(replace_members(before, 1, survivors).gone, testing::ElementsAre(0u));
  const Groups alone = make_groups({3, 1}, no_domains(4)).value();
  Survivors three = all_alive(no_domains(4));
  three.alive[1] = false;
  EXPECT_THAT(replace_members(alone, 1, three).weakened, testing::ElementsAre(0u));
}

TEST(Replacement, OfRandomLossesChangesOnlyWhatWasLost) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 300; ++i) {
    const ParityShape shape{static_cast<std::uint32_t>(random.between(1, 6)),
                            static_cast<std::uint32_t>(random.between(1, parity_max))};
    const std::size_t n = random.between(shape.members(), 60);
    const Labels labels = random_domains(n + random.between(0, 3), random.between(1, 12), random);
    const Groups before = make_groups(shape, {labels.data(), n}).value();
    Survivors survivors = all_alive(labels);
    for (std::size_t node = 0; node < n; ++node) survivors.alive[node] = random.between(1, 6) != 1;
    const ReplacementPlan plan = replace_members(before, shape.parity, survivors);
    std::size_t changed = 0;
    for (std::size_t group = 0; group < before.size(); ++group) {
      ASSERT_EQ(std::set(plan.after[group].begin(), plan.after[group].end()).size(),
                before[group].size());
      for (std::size_t member = 0; member < before[group].size(); ++member) {
        if (plan.after[group][member] == before[group][member]) continue;
        ++changed;
        ASSERT_FALSE(survivors.alive[before[group][member]]);
        ASSERT_TRUE(survivors.alive[plan.after[group][member]]);
      }
    }
    ASSERT_EQ(changed, plan.moves.size());
    ASSERT_EQ(plan.moves, replace_members(before, shape.parity, survivors).moves);
    if (plan.gone.empty() && plan.weakened.empty()) {
      for (const auto& members : plan.after) {
        ASSERT_TRUE(
            std::ranges::all_of(members, [&](NodeId node) { return survivors.alive[node]; }));
      }
    }
  }
}

}  // namespace
}  // namespace backstay::protect
