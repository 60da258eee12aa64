#include "protect/takeover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "protect/made_domains.h"

namespace backstay::protect {
namespace {

using backstay::test::replay;
using namespace test;

Survivors all_alive(const Labels& domains) {
  return {domains, std::vector<bool>(domains.size(), true), 1};
}

Placement place(std::uint32_t replicas, const Labels& domains) {
  return place_replicas({7, replicas, domains}).value();
}

std::vector<std::uint32_t> kept_by(const Placement& placement, std::size_t nodes) {
  std::vector<std::uint32_t> kept(nodes, 0);
  for (NodeId segment = 0; segment < placement.nodes(); ++segment) {
    for (const NodeId holder : placement.of(segment)) ++kept[holder];
  }
  return kept;
}

// Only copies of lost nodes moved, to living nodes that had none, from living nodes that had one.
void expect_sound(const Placement& before, const Survivors& survivors, const TakeoverPlan& plan) {
  std::size_t changed = 0;
  for (NodeId segment = 0; segment < before.nodes(); ++segment) {
    const auto old_row = before.of(segment);
    const auto new_row = plan.after.of(segment);
    ASSERT_EQ(std::set(new_row.begin(), new_row.end()).size(), new_row.size());
    for (std::size_t j = 0; j < old_row.size(); ++j) {
      if (old_row[j] == new_row[j]) continue;
      ++changed;
      ASSERT_FALSE(survivors.alive[old_row[j]]);
      ASSERT_TRUE(survivors.alive[new_row[j]]);
    }
  }
  ASSERT_EQ(changed, plan.moves.size());
  for (const Takeover& move : plan.moves) {
    const auto row = before.of(move.segment);
    ASSERT_TRUE(survivors.alive[move.from]);
    ASSERT_EQ(std::ranges::count(row, move.from), 1);
    ASSERT_EQ(std::ranges::count(row, move.to), 0);
    ASSERT_EQ(std::ranges::count(row, move.lost), 1);
  }
}

TEST(Takeover, OfNoLossMovesNothing) {
  const Placement before = place(2, no_domains(9));
  const TakeoverPlan plan = take_over(before, all_alive(no_domains(9)));
  EXPECT_TRUE(plan.moves.empty());
  EXPECT_EQ(plan.after, before);
}

TEST(Takeover, OfOneLostNodeGivesEachOtherNodeAtMostOneCopyMore) {
  for (NodeId lost = 0; lost < 20; ++lost) {
    const Placement before = place(3, no_domains(20));
    Survivors survivors = all_alive(no_domains(20));
    survivors.alive[lost] = false;
    const TakeoverPlan plan = take_over(before, survivors);
    ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, plan));
    EXPECT_EQ(plan.moves.size(), 4u);  // its own segment and three replicas
    auto kept = kept_by(plan.after, 20);
    EXPECT_EQ(kept[lost], 0u);
    kept.erase(kept.begin() + lost);
    EXPECT_THAT(kept, testing::Each(testing::AnyOf(4u, 5u)));
    std::set<NodeId> readers;
    for (const Takeover& move : plan.moves) readers.insert(move.from);
    EXPECT_EQ(readers.size(), 4u) << "no node is read twice";
  }
}

TEST(Takeover, ASpareTakesTheLostNodesPlace) {
  const Placement before = place(2, no_domains(12));
  Survivors survivors = all_alive(no_domains(13));
  survivors.alive[5] = false;
  const TakeoverPlan plan = take_over(before, survivors);
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, plan));
  EXPECT_EQ(plan.moves.size(), 3u);
  for (const Takeover& move : plan.moves) EXPECT_EQ(move.to, 12u);
  EXPECT_THAT(kept_by(plan.after, 13), testing::Contains(3u).Times(12));
}

TEST(Takeover, ASpareOfAnotherDomainTakesOnlyWhatDoesNotShareIt) {
  const Labels labels = of_sizes({5, 5, 5});
  const Placement before = place(1, labels);
  Labels with_spare = labels;
  with_spare.push_back("0");
  Survivors survivors = all_alive(with_spare);
  survivors.alive[7] = false;  // of domain "1"
  const TakeoverPlan plan = take_over(before, survivors);
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, plan));
  EXPECT_TRUE(relaxation(plan.after, with_spare).text().empty());
}

TEST(Takeover, OfADomainSpreadsItsCopiesOverTheOthers) {
  const Labels labels = of_sizes({10, 10, 10, 10});
  const Placement before = place(2, labels);
  Survivors survivors = all_alive(labels);
  for (NodeId node = 10; node < 20; ++node) survivors.alive[node] = false;
  const TakeoverPlan plan = take_over(before, survivors);
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, plan));
  EXPECT_EQ(plan.moves.size(), 30u);
  EXPECT_TRUE(relaxation(plan.after, labels).text().empty());
  EXPECT_THAT(kept_by(plan.after, 40), testing::Each(testing::Le(5u)));
}

TEST(Takeover, NamesSegmentsThatAreGoneOrWeakened) {
  const Placement before = place(1, no_domains(4));
  Survivors survivors = all_alive(no_domains(4));
  const NodeId partner = before.of(0)[1];
  survivors.alive[0] = survivors.alive[partner] = false;
  const TakeoverPlan two = take_over(before, survivors);
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, two));
  EXPECT_THAT(two.gone, testing::Contains(0u));
  EXPECT_TRUE(two.weakened.empty());

  const Placement full = place(3, no_domains(4));
  Survivors three = all_alive(no_domains(4));
  three.alive[2] = false;
  const TakeoverPlan none = take_over(full, three);
  EXPECT_TRUE(none.moves.empty());
  EXPECT_THAT(none.weakened, testing::ElementsAre(0u, 1u, 2u, 3u));
}

TEST(Takeover, OfRandomLossesIsSound) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 400; ++i) {
    const std::size_t n = random.between(2, 80);
    const auto r = static_cast<std::uint32_t>(random.between(0, std::min<std::size_t>(6, n - 1)));
    const Labels labels = random_domains(n + random.between(0, 4), random.between(1, n), random);
    const Placement before = place(r, {labels.begin(), labels.begin() + static_cast<long>(n)});
    Survivors survivors = all_alive(labels);
    const std::uint64_t one_in = random.between(2, 12);
    for (std::size_t node = 0; node < n; ++node) {
      survivors.alive[node] = random.between(1, one_in) != 1;
    }
    const TakeoverPlan plan = take_over(before, survivors);
    ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, plan));
    const auto living = static_cast<std::uint32_t>(std::ranges::count(survivors.alive, true));
    EXPECT_TRUE(plan.weakened.empty() || living <= r);
    for (NodeId segment = 0; segment < n; ++segment) {
      const bool has_copy = std::ranges::any_of(before.of(segment),
                                                [&](NodeId node) { return survivors.alive[node]; });
      EXPECT_EQ(std::ranges::count(plan.gone, segment), has_copy ? 0 : 1);
    }
    EXPECT_EQ(plan.moves, take_over(before, survivors).moves);
  }
}

}  // namespace
}  // namespace backstay::protect
