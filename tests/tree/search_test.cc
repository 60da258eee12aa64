#include "tree/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace backstay::tree {
namespace {

class SearchTest : public testing::Test {
 protected:
  // The nodes that it asks until it waits.
  std::vector<NodeId> round() {
    std::vector<NodeId> asked;
    while (const auto peer = search.next()) asked.push_back(peer->node);
    return asked;
  }
  Place place = place_of(60, 100, 3);
  SplitMix64 random{1};
  Search search{60, 100, place, [](NodeId node) { return "host" + std::to_string(node); }, random};
};

TEST_F(SearchTest, HomeFirstThenOldAncestorsNearestFirst) {
  search.begin({0, 12, 44});
  const auto asked = round();
  ASSERT_GE(asked.size(), 3U);
  EXPECT_EQ(asked[0], place.ancestors.back());
  EXPECT_EQ(asked[1], 44U);
  EXPECT_EQ(asked[2], 12U);
}

TEST_F(SearchTest, WhoIsProbablyDeadComesLast) {
  search.begin({}, place.ancestors.back());
  const auto asked = round();
  EXPECT_EQ(asked.back(), place.ancestors.back());
  EXPECT_EQ(std::count(asked.begin(), asked.end(), asked.back()), 1);
}

TEST_F(SearchTest, FindsAnyLowerNodeWhoeverIsDead) {
  search.begin({});
  std::set<NodeId> asked;
  for (int i = 0; i < 60 * 17; ++i) {
    for (const NodeId node : round()) asked.insert(node);
    search.tick();
  }
  for (NodeId node = 0; node < 60; ++node) EXPECT_EQ(asked.count(node), 1U) << node;
  EXPECT_EQ(asked.count(60), 0U) << "itself";
}

TEST_F(SearchTest, WaitsLongerAndLongerUpToALimit) {
  search.begin({});
  std::uint32_t longest = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(round().empty());
    std::uint32_t waited = 0;
    while (round().empty() && waited < 100) {
      search.tick();
      ++waited;
      if (const auto peer = search.next()) {
        search.hint(*peer);
        break;
      }
    }
    longest = std::max(longest, waited);
  }
  EXPECT_GT(longest, 4U);
  EXPECT_LE(longest, Search::wait_ticks_max);
}

TEST_F(SearchTest, AHintComesBeforeEverything) {
  search.begin({});
  search.hint({77, "host77"});
  search.hint({60, "itself"});
  EXPECT_EQ(search.next()->node, 77U);
  EXPECT_EQ(search.next()->node, place.ancestors.back());
}

TEST_F(SearchTest, NodeZeroAsksNobody) {
  const Place top = place_of(0, 100, 3);
  Search none(
      0, 100, top, [](NodeId) { return std::string(); }, random);
  none.begin({});
  EXPECT_FALSE(none.next().has_value());
}

}  // namespace
}  // namespace backstay::tree
