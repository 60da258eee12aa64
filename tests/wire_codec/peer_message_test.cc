#include "wire/peer_message.h"

#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::wire::peer {
namespace {

using test::Random;

Buffer encoded(const Message& message) {
  auto packet = encode(message);
  EXPECT_TRUE(packet.ok());
  return std::move(packet).value();
}

TEST(PeerMessage, AllTypesComeBackUnderTheirNumber) {
  const auto messages = test::one_of_each_peer_message();
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
  const auto holders = decode(encoded(samples[7]));
  ASSERT_TRUE(holders.ok());
  EXPECT_EQ(std::get<Holders>(*holders).holders, (std::vector<Holder>{{1, 3}, {2, 3}}));
}

TEST(PeerMessage, EveryTruncationAndEveryExtraByteIsRefused) {
  for (const Message& message : test::one_of_each_peer_message()) {
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
TEST(PeerMessage, ChangedPacketsAreRefusedOrMeanWhatTheySay) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (const Message& message : test::one_of_each_peer_message()) {
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

TEST(PeerMessage, AnotherProtocolIsNamed) {
  Buffer packet = encoded(HoldsSeen{});
  test::overwrite(packet, 2, std::uint16_t{2});
  const auto refused = decode(packet);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::protocol);
  EXPECT_EQ(
      refused.error().message(),
      "the peer speaks protocol 2, this program 1: these two agents are of different releases");
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
