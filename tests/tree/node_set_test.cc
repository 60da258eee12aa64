#include "tree/node_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/seed.h"

namespace backstay::tree {
namespace {

using Plain = std::set<NodeId>;

Plain plain_of(const NodeSet& set) {
  Plain plain;
  for (const auto& span : set.spans()) {
    for (std::uint64_t node = span.begin; node < span.end; ++node) {
      plain.insert(static_cast<NodeId>(node));
    }
  }
  return plain;
}

NodeSet random_set(test::Random& random) {
  std::vector<Range> ranges;
  for (std::uint64_t left = random.between(0, 5); left > 0; --left) {
    ranges.push_back({static_cast<NodeId>(random.between(0, 40)),
                      static_cast<std::uint32_t>(random.between(0, 8))});
  }
  return NodeSet::of(ranges);
}

TEST(NodeSet, DoesWhatASetDoes) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int i = 0; i < 2000; ++i) {
    const NodeSet a = random_set(random);
    const NodeSet b = random_set(random);
    const Plain pa = plain_of(a);
    const Plain pb = plain_of(b);
    Plain both = pa;
    both.insert(pb.begin(), pb.end());
    NodeSet sum = a;
    sum.add(b);
    EXPECT_EQ(plain_of(sum), both);
    EXPECT_EQ(sum.count(), both.size());
    EXPECT_TRUE(sum.contains(a) && sum.contains(b));
    EXPECT_EQ(a.contains(b), std::includes(pa.begin(), pa.end(), pb.begin(), pb.end()));
    Plain rest;
    std::set_difference(pa.begin(), pa.end(), pb.begin(), pb.end(),
                        std::inserter(rest, rest.end()));
    NodeSet left = a;
    left.remove(b);
    EXPECT_EQ(plain_of(left), rest);
    Plain common;
    std::set_intersection(pa.begin(), pa.end(), pb.begin(), pb.end(),
                          std::inserter(common, common.end()));
    EXPECT_EQ(plain_of(intersection(a, b)), common);
    EXPECT_EQ(NodeSet::of(a.ranges(100)), a);
  }
}

TEST(NodeSet, NeighbouringRangesBecomeOne) {
  EXPECT_EQ(NodeSet::of({{5, 3}, {0, 5}, {7, 2}}).ranges(10), (std::vector<Range>{{0, 9}}));
}

TEST(NodeSet, NonsenseOfAPeerIsPutRight) {
  EXPECT_TRUE(NodeSet::of({{7, 0}}).empty());
  const NodeSet end = NodeSet::of({{UINT32_MAX, UINT32_MAX}});
  EXPECT_EQ(end.count(), 1U);
  EXPECT_TRUE(end.contains(UINT32_MAX));
}

TEST(NodeSet, ALimitLeavesOut) {
  const NodeSet set = NodeSet::of({{0, 1}, {2, 1}, {4, 1}});
  EXPECT_TRUE(set.contains(NodeSet::of(set.ranges(2))));
  EXPECT_EQ(set.ranges(2).size(), 2U);
}

}  // namespace
}  // namespace backstay::tree
