#include "tree/floors.h"

#include <gtest/gtest.h>

namespace backstay::tree {
namespace {

const Key key{1, 7, 3};

wire::tree::Row row(std::uint64_t lowest, std::vector<Range> nodes, std::uint64_t floor = 0) {
  return {key, floor, lowest, std::move(nodes)};
}

class FloorsTest : public testing::Test {
 protected:
  Changes changes;
  Floors root{0, 6, changes};  // members 0 .. 5
};

TEST_F(FloorsTest, IsTheLeastOfAllMembers) {
  root.raise_own(key, 3);
  root.child_row(1, row(2, {{1, 2}}));
  EXPECT_EQ(root.floor(key), 0U);
  root.child_row(3, row(4, {{3, 3}}));
  EXPECT_EQ(root.floor(key), 2U);
  root.child_row(1, row(3, {{1, 2}}));
  EXPECT_EQ(root.floor(key), 3U);
  const auto risen = root.take_risen();
  ASSERT_EQ(risen.size(), 2U);
  EXPECT_EQ(risen[1].floor, 3U);
  EXPECT_TRUE(root.take_risen().empty());
}

// Node 3 has moved from child 1 to child 2, and both still report it: five members, not six.
TEST_F(FloorsTest, ANodeThatIsReportedTwiceCountsOnce) {
  root.raise_own(key, 1);
  root.child_row(1, row(1, {{1, 3}}));
  root.child_row(2, row(1, {{3, 2}}));
  EXPECT_EQ(root.floor(key), 0U);
  root.child_row(2, row(1, {{3, 3}}));
  EXPECT_EQ(root.floor(key), 1U);
}

TEST_F(FloorsTest, AFloorStaysWhenTheChildGoes) {
  root.raise_own(key, 1);
  root.child_row(1, row(1, {{1, 5}}));
  root.drop_child(1);
  EXPECT_EQ(root.floor(key), 1U);
  // Not the row: a new level needs the child again.
  root.raise_own(key, 2);
  EXPECT_EQ(root.floor(key), 1U);
}

TEST_F(FloorsTest, ANewRootLearnsTheFloorFromAChild) {
  root.child_row(1, row(0, {}, 4));
  EXPECT_EQ(root.floor(key), 4U);
}

TEST_F(FloorsTest, ASpareCountsForNobody) {
  Floors spare(6, 6, changes);
  spare.raise_own(key, 9);
  spare.child_row(7, row(2, {{1, 5}}));
  EXPECT_EQ(spare.floor(key), 0U);
  const auto rows = spare.rows_since(0);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].lowest, 2U);
  EXPECT_EQ(rows[0].nodes, (std::vector<Range>{{1, 5}}));
}

TEST_F(FloorsTest, OnlyWhatChangedIsSent) {
  root.raise_own(key, 1);
  const std::uint64_t seen = changes.latest;
  EXPECT_EQ(root.rows_since(0).size(), 1U);
  EXPECT_TRUE(root.rows_since(seen).empty());
  root.child_row(1, row(1, {{1, 1}}));
  EXPECT_EQ(root.rows_since(seen).size(), 1U);
  EXPECT_TRUE(root.floors_since(0).empty());
}

TEST_F(FloorsTest, WhatIsSaidAgainIsSentAgainUnlessAllHaveReachedIt) {
  root.raise_own(key, 2);
  const std::uint64_t seen = changes.latest;
  root.raise_own(key, 1);
  EXPECT_TRUE(root.rows_since(seen).empty());
  root.raise_own(key, 2);
  EXPECT_EQ(root.rows_since(seen).size(), 1U);
  root.child_row(1, row(2, {{1, 5}}));
  const std::uint64_t reached = changes.latest;
  root.raise_own(key, 2);
  EXPECT_TRUE(root.rows_since(reached).empty());
}

TEST_F(FloorsTest, ACompleteRowIsWorthAMessage) {
  const NodeSet below = NodeSet::range(0, 3);
  root.raise_own(key, 1);
  EXPECT_FALSE(root.take_complete(below));
  root.child_row(1, row(1, {{1, 2}}));
  EXPECT_TRUE(root.take_complete(below));
  EXPECT_FALSE(root.take_complete(below));
}

// However many versions are given up, the newest is counted; and a barrier is waited at for as long
// as it takes.
TEST_F(FloorsTest, TheVersionThatChangedLongestAgoIsForgotten) {
  const Key barrier{static_cast<std::uint32_t>(Kind::barrier), 7, 1};
  root.raise_own(barrier, 1);
  const auto last = 3 * Floors::keys_max;
  for (std::uint64_t version = 1; version <= last; ++version) root.raise_own({1, 7, version}, 2);
  EXPECT_LE(root.rows_since(0).size(), Floors::keys_max);
  const Key newest{1, 7, last + 1};
  root.child_row(1, {newest, 0, 2, {{1, 5}}});
  root.raise_own({1, 7, last + 2}, 2);
  root.raise_own(newest, 2);
  EXPECT_EQ(root.floor(newest), 2U) << "also where the others report before this node";
  root.child_row(1, {{1, 7, 1}, 0, 2, {{1, 5}}});
  EXPECT_EQ(root.floor({1, 7, 1}), 0U);
  root.child_row(1, {barrier, 0, 1, {{1, 5}}});
  EXPECT_EQ(root.floor(barrier), 1U);
}

}  // namespace
}  // namespace backstay::tree
