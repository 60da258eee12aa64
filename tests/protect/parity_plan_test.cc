// Where blocks lie, and what the plans cost each member of a group.
#include <gmock/gmock.h>
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

TEST(RebuildPlan, OfDataSpreadsTheWorkEvenly) {
  for (const ParityShape shape : shapes()) {
    const Stripes stripes = equal(shape);
    const auto plan = plan_rebuild(stripes, std::vector<std::uint32_t>{0}, Wanted::data).value();
    EXPECT_EQ(plan.size(), shape.data);
    const auto traffic = traffic_of(stripes, plan);
    EXPECT_EQ(traffic[0].received, shape.data * block);
    for (std::uint32_t member = 1; member < stripes.count(); ++member) {
      EXPECT_LE(traffic[member].received, (shape.data - 1) * block) << "one stripe each at most";
      EXPECT_LE(traffic[member].sent, (shape.data + 1) * block)
          << "(" << shape.data << ", " << shape.parity << ") member " << member;
    }
  }
}

// Sets of lost members, from one to m: neighbours on the ring, and every second one.
std::vector<std::vector<std::uint32_t>> losses(ParityShape shape) {
  std::vector<std::vector<std::uint32_t>> all;
  for (std::uint32_t count = 1; count <= shape.parity; ++count) {
    for (const std::uint32_t step : {1u, 2u}) {
      std::vector<std::uint32_t> lost;
      for (std::uint32_t i = 0; i < count && i * step < shape.members(); ++i)
        lost.push_back(i * step);
      all.push_back(lost);
    }
  }
  return all;
}

TEST(RebuildPlan, OfAnyLossSpreadsWorkAndReadingOverTheLiving) {
  for (const ParityShape shape : shapes()) {
    const Stripes stripes = equal(shape);
    for (const auto& lost : losses(shape)) {
      SCOPED_TRACE(testing::Message() << "(" << shape.data << ", " << shape.parity << ") without "
                                      << testing::PrintToString(lost));
      std::vector<std::uint32_t> works(stripes.count(), 0);
      std::vector<std::uint32_t> read(stripes.count(), 0);
      const auto plan = plan_rebuild(stripes, lost, Wanted::data_and_parity).value();
      std::uint32_t reads = 0;
      for (const StripeWork& work : plan) {
        ++works[work.worker];
        EXPECT_EQ(work.reads.size(), shape.data);
        for (const Block& source : work.reads) {
          reads += source.member == work.worker ? 0 : 1;
          read[source.member] += source.member == work.worker ? 0 : 1;
        }
      }
      const auto living = static_cast<std::uint32_t>(stripes.count() - lost.size());
      for (std::uint32_t member = 0; member < stripes.count(); ++member) {
        EXPECT_LE(works[member], (stripes.count() + living - 1) / living);
        EXPECT_LE(read[member], (reads + living - 1) / living + 1);
      }
    }
  }
}

// What the busiest member sends, over the mean of the living.
double imbalance(const Stripes& stripes, const std::vector<std::uint32_t>& lost) {
  const auto plan = plan_rebuild(stripes, lost, Wanted::data_and_parity).value();
  double most = 0;
  double sum = 0;
  for (const Traffic& one : traffic_of(stripes, plan)) {
    most = std::max(most, static_cast<double>(one.sent));
    sum += static_cast<double>(one.sent);
  }
  return most / (sum / static_cast<double>(stripes.count() - lost.size()));
}

// Segments of 0 to 100 000 bytes. Without looking at what is sent already the mean is above 1.33.
TEST(RebuildPlan, OfUnequalSegmentsSpreadsTheReading) {
  backstay::test::Random random(1);
  double sum = 0;
  const int draws = 2000;
  for (int i = 0; i < draws; ++i) {
    const ParityShape shape{static_cast<std::uint32_t>(random.between(1, 8)),
                            static_cast<std::uint32_t>(random.between(2, parity_max))};
    std::vector<std::uint64_t> lengths(shape.members());
    for (auto& length : lengths) length = random.between(1, 100'000);
    sum += imbalance({shape, lengths},
                     {static_cast<std::uint32_t>(random.between(0, shape.members() - 1))});
  }
  EXPECT_LT(sum / draws, 1.3);
}

TEST(RebuildPlan, OfParityComesAfterData) {
  const Stripes stripes = equal({3, 2});
  const auto plan =
      plan_rebuild(stripes, std::vector<std::uint32_t>{1}, Wanted::data_and_parity).value();
  ASSERT_EQ(plan.size(), 5u);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(stripes.is_parity(plan[i].makes.at(0).index), i >= 3) << i;
  }
}

TEST(RebuildPlan, OfMoreThanMIsRefusedByName) {
  const auto refused = plan_rebuild(equal({3, 1}), std::vector<std::uint32_t>{0, 2}, Wanted::data);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::lost);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("2 of 4 members"));
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("(0, 2)"));
}

TEST(RebuildPlan, OfNothingLostIsEmpty) {
  EXPECT_TRUE(plan_rebuild(equal({3, 1}), {}, Wanted::data_and_parity).value().empty());
}

}  // namespace
}  // namespace backstay::protect
