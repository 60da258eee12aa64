#include "wire/tree_message.h"

#include <gtest/gtest.h>

#include "support/samples.h"

namespace backstay::wire::tree {
namespace {

Buffer encoded(const Message& message) {
  auto packet = encode(message);
  EXPECT_TRUE(packet.ok());
  return std::move(packet).value();
}

TEST(TreeMessage, NestedFieldsComeBackOneByOne) {
  const auto back = decode(encoded(test::one_of_each_tree_message()[3]));
  ASSERT_TRUE(back.ok());
  const auto& report = std::get<Report>(*back);
  EXPECT_EQ(report.link, (LinkId{5, 1ULL << 60, 3}));
  EXPECT_EQ(report.change, 77U);
  EXPECT_EQ(report.seen, 76U);
  EXPECT_EQ(report.present, (std::vector<Range>{{5, 3}, {9, 1}}));
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].key, (Key{2, 99, 12}));
  EXPECT_EQ(report.rows[0].floor, 2U);
  EXPECT_EQ(report.rows[0].lowest, 3U);
  EXPECT_EQ(report.rows[0].nodes, (std::vector<Range>{{5, 3}}));
  EXPECT_EQ(report.facts_seen, 8U);
  EXPECT_EQ(report.lower_roots, (std::vector<Peer>{{1, "host1"}}));
}

TEST(TreeMessage, ListsBeyondTheLimitAreRefused) {
  EXPECT_TRUE(encode(Accept{{}, std::vector<NodeId>(list_entries_max)}).ok());
  const auto refused = encode(Accept{{}, std::vector<NodeId>(list_entries_max + 1)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::too_large);
}

}  // namespace
}  // namespace backstay::wire::tree
