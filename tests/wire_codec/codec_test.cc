// What holds for the messages of every protocol: between a rank and its agent, between agents in
// the tree, and about files.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "base/alternative.h"
#include "support/damage.h"
#include "support/samples.h"
#include "wire/message.h"
#include "wire/peer_message.h"
#include "wire/tree_message.h"

namespace backstay::wire {
namespace {

using test::Random;

struct OfRanks {
  static constexpr const char* who = "program and agent";
  using Message = wire::Message;
  static std::vector<Message> samples() { return test::one_of_each_message(); }
  static Result<Message> decode(Bytes packet) { return wire::decode(packet); }
};
struct OfTheTree {
  static constexpr const char* who = "these two agents";
  using Message = tree::Message;
  static std::vector<Message> samples() { return test::one_of_each_tree_message(); }
  static Result<Message> decode(Bytes packet) { return tree::decode(packet); }
};
struct OfFiles {
  static constexpr const char* who = "these two agents";
  using Message = peer::Message;
  static std::vector<Message> samples() { return test::one_of_each_peer_message(); }
  static Result<Message> decode(Bytes packet) { return peer::decode(packet); }
};

template <typename Protocol>
class Codec : public ::testing::Test {
 protected:
  using Message = typename Protocol::Message;
  const std::vector<Message> samples = Protocol::samples();

  static Buffer encoded(const Message& message) {
    auto packet = encode(message);
    EXPECT_TRUE(packet.ok());
    return std::move(packet).value();
  }
  static Result<Message> decode(const Buffer& packet) { return Protocol::decode(packet); }
};
using Protocols = ::testing::Types<OfRanks, OfTheTree, OfFiles>;
TYPED_TEST_SUITE(Codec, Protocols);

TYPED_TEST(Codec, AllTypesComeBackUnderTheirNumber) {
  ASSERT_EQ(this->samples.size(), std::variant_size_v<VariantOf<typename TypeParam::Message>>);
  for (std::size_t i = 0; i < this->samples.size(); ++i) {
    ASSERT_EQ(this->samples[i].index(), i);
    const Buffer packet = this->encoded(this->samples[i]);
    ByteReader in(packet);
    EXPECT_EQ(in.get<std::uint16_t>(), i + 1);
    EXPECT_EQ(in.get<std::uint16_t>(), 1U);
    EXPECT_EQ(in.get<std::uint32_t>(), packet.size() - 8);
    const auto back = this->decode(packet);
    ASSERT_TRUE(back.ok()) << i << ": " << back.error().to_string();
    EXPECT_EQ((*back).index(), i);
    EXPECT_EQ(this->encoded(*back), packet);
  }
}

// Also with the header telling the truth: then the body itself must be found wanting.
TYPED_TEST(Codec, EveryTruncationAndEveryExtraByteIsRefused) {
  for (const auto& message : this->samples) {
    Buffer packet = this->encoded(message);
    test::for_every_prefix(packet, [&](Buffer shorter) {
      EXPECT_FALSE(this->decode(shorter).ok()) << message.index() << " at " << shorter.size();
      if (shorter.size() < 8) return;
      test::overwrite(shorter, 4, static_cast<std::uint32_t>(shorter.size() - 8));
      EXPECT_FALSE(this->decode(shorter).ok()) << message.index() << " at " << shorter.size();
    });
    packet.push_back(std::byte{0});
    EXPECT_FALSE(this->decode(packet).ok()) << message.index();
    test::overwrite(packet, 4, static_cast<std::uint32_t>(packet.size() - 8));
    EXPECT_FALSE(this->decode(packet).ok()) << message.index();
  }
}

// Messages carry no checksum. Whatever a changed packet still decodes to must be exactly what it
// says: encoding it again gives the same bytes.
TYPED_TEST(Codec, ChangedPacketsAreRefusedOrMeanWhatTheySay) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (const auto& message : this->samples) {
    const Buffer good = this->encoded(message);
    for (int i = 0; i < 400; ++i) {
      Buffer packet = good;
      for (std::uint64_t left = random.between(1, 4); left > 0; --left) {
        packet[random.between(0, packet.size() - 1)] =
            static_cast<std::byte>(random.between(0, 255));
      }
      const auto back = this->decode(packet);
      if (!back.ok()) continue;
      EXPECT_EQ(this->encoded(*back), packet);
    }
  }
}

TYPED_TEST(Codec, AnotherProtocolIsNamed) {
  Buffer packet = this->encoded(this->samples.front());
  test::overwrite(packet, 2, std::uint16_t{2});
  const auto refused = this->decode(packet);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::protocol);
  EXPECT_EQ(refused.error().message(), std::string("the peer speaks protocol 2, this program 1: ") +
                                           TypeParam::who + " are of different releases");
}

}  // namespace
}  // namespace backstay::wire
