// Where blocks lie, and what the plans cost each member of a group.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "protect/parity.h"
#include "support/seed.h"

namespace backstay::protect {
namespace {

constexpr std::uint64_t block = 8192;

// Members with k whole blocks each.
Stripes equal(ParityShape shape) {
  return {shape, std::vector<std::uint64_t>(shape.members(), shape.data * block)};
}

std::vector<ParityShape> shapes() {
  std::vector<ParityShape> all;
  for (std::uint32_t k = 1; k <= 9; ++k) {
    for (std::uint32_t m = 1; m <= parity_max; ++m) all.push_back({k, m});
  }
  return all;
}

TEST(Stripes, OfThreeAndOneAreThoseOfThePage) {
  const Stripes stripes = equal({3, 1});
  EXPECT_EQ(stripes.block(1, 0), (Block{0, 1, 0, block}));
  EXPECT_EQ(stripes.block(1, 1), (Block{1, 2, 0, block}));
  EXPECT_EQ(stripes.block(1, 3), (Block{3, 0, 2 * block, block}));
  EXPECT_EQ(stripes.index_of(1, 0), 3u);
  EXPECT_EQ(stripes.parity_bytes(), block);
}

TEST(Stripes, CoverEachSegmentAndParityFileOnceWithOneBlockAMember) {
  for (const ParityShape shape : shapes()) {
    std::vector<std::uint64_t> lengths;
    for (std::uint32_t i = 0; i < shape.members(); ++i) lengths.push_back(i * 5000);
    const Stripes stripes(shape, lengths);
    std::vector<std::uint64_t> data(shape.members(), 0);
    std::vector<std::set<std::uint64_t>> parity(shape.members());
    for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
      std::set<std::uint32_t> members;
      for (std::uint32_t index = 0; index < stripes.count(); ++index) {
        const Block one = stripes.block(stripe, index);
        members.insert(one.member);
        EXPECT_EQ(stripes.index_of(stripe, one.member), index);
        if (stripes.is_parity(index)) {
          parity[one.member].insert(one.offset / stripes.block_bytes());
        } else {
          data[one.member] += one.bytes;
        }
      }
      EXPECT_EQ(members.size(), stripes.count());
    }
    EXPECT_EQ(data, lengths);
    for (const auto& pieces : parity) EXPECT_EQ(pieces.size(), shape.parity);
    EXPECT_GE(stripes.block_bytes() * shape.data, lengths.back());
    EXPECT_LT(stripes.block_bytes() * shape.data, lengths.back() + shape.data * Stripes::alignment);
  }
}

TEST(EncodePlan, SendsAndReceivesKPlusMLessOneBlocksAMember) {
  for (const ParityShape shape : shapes()) {
    const Stripes stripes = equal(shape);
    const auto plan = plan_encode(stripes);
    EXPECT_EQ(plan.size(), stripes.count());
    for (const Traffic& one : traffic_of(stripes, plan)) {
      const std::uint64_t expected = (shape.data + shape.parity - 1) * block;
      EXPECT_EQ(one.sent, expected);
      EXPECT_EQ(one.received, expected);
      EXPECT_LE(one.sent, shape.parity * shape.data * block) << "never more than m times the data";
    }
  }
}

TEST(EncodePlan, HasEachMemberSendToOneAndReceiveFromOneInEachStep) {
  const auto plan = plan_encode(equal({5, 3}));
  for (std::size_t step = 0; step < 5; ++step) {
    std::set<std::uint32_t> senders;
    for (const StripeWork& work : plan) senders.insert(work.reads.at(step).member);
    EXPECT_EQ(senders.size(), plan.size()) << "step " << step;
  }
}

TEST(EncodePlan, SendsShortSegmentsOnlyAsFarAsTheyReach) {
  const Stripes stripes({2, 1}, {8 * block, 1000, 0});
  const auto traffic = traffic_of(stripes, plan_encode(stripes));
  EXPECT_EQ(traffic[0].sent, 8 * block);
  EXPECT_EQ(traffic[1].sent, 1000u);
  EXPECT_EQ(traffic[2].sent, 0u);
  EXPECT_TRUE(plan_encode(Stripes({2, 1}, {0, 0, 0})).empty());
}

}  // namespace
}  // namespace backstay::protect
