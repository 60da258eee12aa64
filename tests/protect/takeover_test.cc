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

// Only copies of lost nodes moved, to living nodes that had none. How many: `moved`.
void expect_sound(const Placement& before, const Survivors& survivors, const Placement& after,
                  std::size_t& moved) {
  moved = 0;
  for (NodeId segment = 0; segment < before.nodes(); ++segment) {
    const auto old_row = before.of(segment);
    const auto new_row = after.of(segment);
    ASSERT_EQ(std::set(new_row.begin(), new_row.end()).size(), new_row.size());
    for (std::size_t j = 0; j < old_row.size(); ++j) {
      if (old_row[j] == new_row[j]) continue;
      ++moved;
      ASSERT_FALSE(survivors.alive[old_row[j]]);
      ASSERT_TRUE(survivors.alive[new_row[j]]);
      ASSERT_EQ(std::ranges::count(old_row, new_row[j]), 0);
    }
  }
}

TEST(Takeover, OfNoLossMovesNothing) {
  const Placement before = place(2, no_domains(9));
  EXPECT_EQ(take_over(before, all_alive(no_domains(9))), before);
}

TEST(Takeover, OfOneLostNodeGivesEachOtherNodeAtMostOneCopyMore) {
  for (NodeId lost = 0; lost < 20; ++lost) {
    const Placement before = place(3, no_domains(20));
    Survivors survivors = all_alive(no_domains(20));
    survivors.alive[lost] = false;
    const Placement after = take_over(before, survivors);
    std::size_t moved = 0;
    ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, after, moved));
    EXPECT_EQ(moved, 4u);  // its own segment and three replicas
    auto kept = kept_by(after, 20);
    EXPECT_EQ(kept[lost], 0u);
    kept.erase(kept.begin() + lost);
    EXPECT_THAT(kept, testing::Each(testing::AnyOf(4u, 5u)));
  }
}

TEST(Takeover, ASpareTakesTheLostNodesPlace) {
  const Placement before = place(2, no_domains(12));
  Survivors survivors = all_alive(no_domains(13));
  survivors.alive[5] = false;
  const Placement after = take_over(before, survivors);
  std::size_t moved = 0;
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, after, moved));
  EXPECT_EQ(moved, 3u);
  EXPECT_EQ(kept_by(after, 13)[12], 3u);
  EXPECT_THAT(kept_by(after, 13), testing::Contains(3u).Times(12));
}

TEST(Takeover, ASpareOfAnotherDomainTakesOnlyWhatDoesNotShareIt) {
  const Labels labels = of_sizes({5, 5, 5});
  const Placement before = place(1, labels);
  Labels with_spare = labels;
  with_spare.push_back("0");
  Survivors survivors = all_alive(with_spare);
  survivors.alive[7] = false;  // of domain "1"
  const Placement after = take_over(before, survivors);
  std::size_t moved = 0;
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, after, moved));
  EXPECT_TRUE(relaxation(after, with_spare).text().empty());
}

TEST(Takeover, OfADomainSpreadsItsCopiesOverTheOthers) {
  const Labels labels = of_sizes({10, 10, 10, 10});
  const Placement before = place(2, labels);
  Survivors survivors = all_alive(labels);
  for (NodeId node = 10; node < 20; ++node) survivors.alive[node] = false;
  const Placement after = take_over(before, survivors);
  std::size_t moved = 0;
  ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, after, moved));
  EXPECT_EQ(moved, 30u);
  EXPECT_TRUE(relaxation(after, labels).text().empty());
  EXPECT_THAT(kept_by(after, 40), testing::Each(testing::Le(5u)));
}

TEST(Takeover, LeavesWhatIsGoneAndWhatNobodyIsLeftFor) {
  const Placement before = place(1, no_domains(4));
  Survivors survivors = all_alive(no_domains(4));
  const NodeId partner = before.of(0)[1];
  survivors.alive[0] = survivors.alive[partner] = false;
  const Placement two = take_over(before, survivors);
  EXPECT_TRUE(std::ranges::equal(two.of(0), before.of(0))) << "both that had it are lost";

  const Placement full = place(3, no_domains(4));
  Survivors three = all_alive(no_domains(4));
  three.alive[2] = false;
  EXPECT_EQ(take_over(full, three), full);
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
    const Placement after = take_over(before, survivors);
    std::size_t moved = 0;
    ASSERT_NO_FATAL_FAILURE(expect_sound(before, survivors, after, moved));
    const auto lives = [&](NodeId node) { return survivors.alive[node]; };
    const auto living = static_cast<std::uint32_t>(std::ranges::count(survivors.alive, true));
    for (NodeId segment = 0; segment < n; ++segment) {
      const bool has_copy = std::ranges::any_of(before.of(segment), lives);
      if (has_copy && living > r) {
        EXPECT_TRUE(std::ranges::all_of(after.of(segment), lives)) << segment;
      } else if (!has_copy) {
        EXPECT_TRUE(std::ranges::equal(after.of(segment), before.of(segment))) << segment;
      }
    }
    EXPECT_EQ(after, take_over(before, survivors));
  }
}

}  // namespace
}  // namespace backstay::protect
