#include "tree/failure_detector.h"

#include <gtest/gtest.h>

namespace backstay::tree {
namespace {

constexpr std::uint32_t grace = 5;

class FailureDetectorTest : public testing::Test {
 protected:
  void ticks(const NodeSet& present, std::uint32_t times) {
    for (; times > 0; --times) {
      failure_detector.seen(present);
      failure_detector.tick_at_root();
    }
  }
  Changes changes;
  FailureDetector failure_detector{8, grace, changes};
  NodeSet all = NodeSet::range(0, 8);
  NodeSet without_3 = NodeSet::of({{0, 3}, {4, 4}});
};

TEST_F(FailureDetectorTest, WhoIsMissingIsSuspectedFirstAndLostAfterTheGrace) {
  failure_detector.become_root();
  ticks(all, 7);
  ticks(without_3, 7);
  EXPECT_TRUE(failure_detector.lost().empty()) << "it was seen in this period";
  ticks(without_3, grace);
  EXPECT_EQ(failure_detector.lost(), NodeSet::range(3, 1));
}

TEST_F(FailureDetectorTest, WhoComesBackInTimeWasNeverLost) {
  failure_detector.become_root();
  ticks(all, grace);
  const std::uint64_t before = failure_detector.changed();
  for (int i = 0; i < 10; ++i) {
    ticks(without_3, grace - 1);
    ticks(all, 1);
  }
  EXPECT_EQ(failure_detector.changed(), before);
}

TEST_F(FailureDetectorTest, WhoComesBackIsBackAtOnce) {
  failure_detector.become_root();
  ticks(without_3, 3 * grace);
  ASSERT_EQ(failure_detector.lost().count(), 1U);
  failure_detector.seen(all);
  EXPECT_TRUE(failure_detector.lost().empty());
}

TEST_F(FailureDetectorTest, ANewRootGivesEverybodyTimeToFindIt) {
  failure_detector.parent_says(NodeSet::range(7, 1));
  failure_detector.become_root();
  ticks(NodeSet::range(1, 2), grace);
  EXPECT_EQ(failure_detector.lost(), NodeSet::range(7, 1)) << "as the old root had said";
  ticks(NodeSet::range(1, 2), grace);
  EXPECT_EQ(failure_detector.lost().count(), 6U);
}

}  // namespace
}  // namespace backstay::tree
