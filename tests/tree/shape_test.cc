#include "tree/shape.h"

#include <gtest/gtest.h>

#include <cmath>

namespace backstay::tree {
namespace {

TEST(Shape, ParentsAndChildrenAgreeAndSubtreesAreRanges) {
  for (const std::uint32_t arity : {2U, 3U, 16U}) {
    for (const std::uint32_t nodes : {1U, 2U, 3U, 16U, 17U, 18U, 100U, 1000U}) {
      std::size_t deepest = 0;
      for (NodeId node = 0; node < nodes; ++node) {
        const Place place = place_of(node, nodes, arity);
        deepest = std::max(deepest, place.ancestors.size());
        EXPECT_LE(place.children.size(), arity);
        NodeId next = node + 1;
        for (const NodeId child : place.children) {
          EXPECT_EQ(child, next) << "of node " << node;
          const Place below = place_of(child, nodes, arity);
          ASSERT_FALSE(below.ancestors.empty());
          EXPECT_EQ(below.ancestors.back(), node);
          EXPECT_EQ(below.ancestors.size(), place.ancestors.size() + 1);
          next += below.subtree;
        }
        EXPECT_EQ(next, node + place.subtree);
      }
      const double levels = nodes == 1 ? 0 : std::ceil(std::log(nodes) / std::log(arity));
      EXPECT_LE(deepest, levels + 0.5) << nodes << " nodes, arity " << arity;
    }
  }
}

TEST(Shape, DepthOfLargeRuns) {
  EXPECT_EQ(place_of(2046, 2047, 16).ancestors.size(), 3U);
  EXPECT_EQ(place_of(99'999, 100'000, 16).ancestors.size(), 4U);
  EXPECT_EQ(place_of(5, 100'000, 16).ancestors.size(), 5U);
}

TEST(Shape, ASparesHomeIsAMember) {
  const Place spare = place_of(12, 10, 2);
  EXPECT_EQ(spare.ancestors.back(), 2U);
  EXPECT_TRUE(spare.children.empty());
  EXPECT_EQ(spare.subtree, 1U);
}

}  // namespace
}  // namespace backstay::tree
