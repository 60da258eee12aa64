#include "tree/roll.h"

#include <gtest/gtest.h>

namespace backstay::tree {
namespace {

constexpr std::uint32_t grace = 5;

class RollTest : public testing::Test {
 protected:
  void ticks(const NodeSet& present, std::uint32_t times) {
    for (; times > 0; --times) {
      roll.seen(present);
      roll.tick_at_root();
    }
  }
  Changes changes;
  Roll roll{8, grace, changes};
  NodeSet all = NodeSet::range(0, 8);
  NodeSet without_3 = NodeSet::of({{0, 3}, {4, 4}});
};

TEST_F(RollTest, WhoIsMissingIsSuspectedFirstAndLostAfterTheGrace) {
  roll.become_root();
  ticks(all, 7);
  ticks(without_3, 7);
  EXPECT_TRUE(roll.lost().empty()) << "it was seen in this period";
  ticks(without_3, grace);
  EXPECT_EQ(roll.lost(), NodeSet::range(3, 1));
}

TEST_F(RollTest, WhoComesBackInTimeWasNeverLost) {
  roll.become_root();
  ticks(all, grace);
  const std::uint64_t before = roll.changed();
  for (int i = 0; i < 10; ++i) {
    ticks(without_3, grace - 1);
    ticks(all, 1);
  }
  EXPECT_EQ(roll.changed(), before);
}

TEST_F(RollTest, WhoComesBackIsBackAtOnce) {
  roll.become_root();
  ticks(without_3, 3 * grace);
  ASSERT_EQ(roll.lost().count(), 1U);
  roll.seen(all);
  EXPECT_TRUE(roll.lost().empty());
}

TEST_F(RollTest, ANewRootGivesEverybodyTimeToFindIt) {
  roll.parent_says(NodeSet::range(7, 1));
  roll.become_root();
  ticks(NodeSet::range(1, 2), grace);
  EXPECT_EQ(roll.lost(), NodeSet::range(7, 1)) << "as the old root had said";
  ticks(NodeSet::range(1, 2), grace);
  EXPECT_EQ(roll.lost().count(), 6U);
}

}  // namespace
}  // namespace backstay::tree
