#include "wire/tree_message.h"

#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::wire::tree {
namespace {

using test::Random;

Buffer encoded(const Message& message) {
  auto packet = encode(message);
  EXPECT_TRUE(packet.ok());
  return std::move(packet).value();
}

TEST(TreeMessage, AllTypesComeBackUnderTheirNumber) {
  const auto messages = test::one_of_each_tree_message();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(messages[i].index(), i);
    const Buffer packet = encoded(messages[i]);
    EXPECT_EQ(ByteReader(packet).get<std::uint16_t>(), i + 1);
    const auto back = decode(packet);
    ASSERT_TRUE(back.ok()) << i << ": " << back.error().to_string();
    EXPECT_EQ(back->index(), i);
    EXPECT_EQ(encoded(*back), packet);
  }
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

TEST(TreeMessage, EveryTruncationAndEveryExtraByteIsRefused) {
  for (const Message& message : test::one_of_each_tree_message()) {
    Buffer packet = encoded(message);
    test::for_every_prefix(packet, [&](Buffer shorter) {
      EXPECT_FALSE(decode(shorter).ok()) << message.index() << " at " << shorter.size();
      if (shorter.size() < 8) return;
      test::overwrite(shorter, 4, static_cast<std::uint32_t>(shorter.size() - 8));
      EXPECT_FALSE(decode(shorter).ok()) << message.index() << " at " << shorter.size();
    });
    packet.push_back(std::byte{0});
    test::overwrite(packet, 4, static_cast<std::uint32_t>(packet.size() - 8));
    EXPECT_FALSE(decode(packet).ok()) << message.index();
  }
}

// A connection keeps its bytes; whatever else arrives is refused or means exactly what it says.
TEST(TreeMessage, ChangedPacketsAreRefusedOrMeanWhatTheySay) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (const Message& message : test::one_of_each_tree_message()) {
    const Buffer good = encoded(message);
    for (int i = 0; i < 400; ++i) {
      Buffer packet = good;
      for (std::uint64_t left = random.between(1, 4); left > 0; --left) {
        packet[random.between(0, packet.size() - 1)] =
            static_cast<std::byte>(random.between(0, 255));
      }
      const auto back = decode(packet);
      if (!back.ok()) continue;
      EXPECT_EQ(encoded(*back), packet);
    }
  }
}

TEST(TreeMessage, AnotherProtocolIsNamed) {
  Buffer packet = encoded(Leave{});
  test::overwrite(packet, 2, std::uint16_t{2});
  const auto refused = decode(packet);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::protocol);
  EXPECT_EQ(
      refused.error().message(),
      "the peer speaks protocol 2, this program 1: these two agents are of different releases");
}

TEST(TreeMessage, ListsBeyondTheLimitAreRefused) {
  EXPECT_TRUE(encode(Accept{{}, std::vector<NodeId>(list_entries_max)}).ok());
  const auto refused = encode(Accept{{}, std::vector<NodeId>(list_entries_max + 1)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::too_large);
}

}  // namespace
}  // namespace backstay::wire::tree
