// The places of a group's blocks.
#include "protect/stripes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

// So no member is asked by two others at once, where all go through the blocks of their stripes in
// this order.
TEST(Stripes, HaveTheirBlocksOfOneIndexAtDifferentMembers) {
  const Stripes stripes = equal({5, 3});
  for (std::uint32_t index = 0; index < stripes.count(); ++index) {
    std::set<std::uint32_t> members;
    for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
      members.insert(stripes.block(stripe, index).member);
    }
    EXPECT_EQ(members.size(), stripes.count()) << "index " << index;
  }
}

}  // namespace
}  // namespace backstay::protect
