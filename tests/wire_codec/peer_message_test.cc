#include "wire/peer_message.h"

#include <gtest/gtest.h>

#include "support/samples.h"

namespace backstay::wire::peer {
namespace {

Buffer encoded(const Message& message) {
  auto packet = encode(message);
  EXPECT_TRUE(packet.ok());
  return std::move(packet).value();
}

TEST(PeerMessage, FieldsComeBackOneByOne) {
  const auto samples = test::one_of_each_peer_message();
  const auto keep = decode(encoded(samples[2]));
  ASSERT_TRUE(keep.ok());
  const auto& kept = std::get<Keep>(*keep);
  EXPECT_EQ(std::tuple(kept.version, kept.run, kept.node, kept.segment_bytes, kept.nodes),
            std::tuple(12U, 0x1122334455667788U, 3U, 1ULL << 33, 7U));
  EXPECT_EQ(std::tuple(kept.ranks, kept.recorded, kept.payload_bytes, kept.manifests_sum),
            std::tuple(64U, Level::local, 1ULL << 32, 99U));
  EXPECT_EQ(std::tuple(kept.captured_ns, kept.committed_ns), std::tuple(41U, 42U));
  EXPECT_EQ(kept.holders, (std::vector<NodeId>{3, 5}));
  EXPECT_EQ(kept.needs, (std::vector<Need>{{9, kept.run}, {11, kept.run}}));
  const auto holders = decode(encoded(samples[7]));
  ASSERT_TRUE(holders.ok());
  EXPECT_EQ(std::get<Holders>(*holders).holders, (std::vector<Holder>{{1, 3}, {2, 3}}));
  const auto over = decode(encoded(samples[14]));
  ASSERT_TRUE(over.ok());
  EXPECT_EQ(std::get<TurnOver>(*over).needs, (std::vector<Need>{{9, kept.run}}));
  const auto durable = decode(encoded(samples[15]));
  ASSERT_TRUE(durable.ok());
  EXPECT_EQ(std::get<Durable>(*durable).needs, kept.needs);
}

TEST(PeerMessage, ListsBeyondTheLimitAreRefused) {
  Holds holds;
  holds.ranks.resize(list_entries_max);
  EXPECT_TRUE(encode(holds).ok());
  holds.ranks.push_back(0);
  const auto refused = encode(holds);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::too_large);
}

}  // namespace
}  // namespace backstay::wire::peer
