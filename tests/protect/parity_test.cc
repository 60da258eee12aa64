// Groups in memory: every set of at most m lost members comes back, byte for byte.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "protect/memory_group.h"

namespace backstay::protect {
namespace {

using backstay::test::replay;
using backstay::test::seed;
using test::MemoryGroup;

std::vector<std::uint32_t> members_of(std::uint32_t set) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t member = 0; set >> member != 0; ++member) {
    if ((set >> member & 1) != 0) members.push_back(member);
  }
  return members;
}

// Loses every set of at most m members.
void lose_every_set(const MemoryGroup& whole) {
  const ParityShape shape = whole.stripes.shape();
  for (std::uint32_t set = 0; set < 1u << shape.members(); ++set) {
    const std::vector<std::uint32_t> lost = members_of(set);
    if (lost.size() > shape.parity) continue;
    MemoryGroup group = whole;
    ASSERT_NO_FATAL_FAILURE(group.lose_and_rebuild(lost, std::popcount(set) % 2 == 1));
    ASSERT_EQ(group.segments, whole.segments) << "set " << set;
    ASSERT_EQ(group.parities, whole.parities) << "set " << set;
  }
}

TEST(Parity, BringsBackEverySetOfUpToMMembers) {
  SCOPED_TRACE(replay());
  for (std::uint32_t k = 1; k <= 6; ++k) {
    for (std::uint32_t m = 1; m <= parity_max; ++m) {
      SCOPED_TRACE(testing::Message() << "(" << k << ", " << m << ")");
      MemoryGroup group({k, m}, std::vector<std::uint64_t>(k + m, k * 4096), seed() + k);
      group.encode(false);
      ASSERT_NO_FATAL_FAILURE(lose_every_set(group));
    }
  }
}

TEST(Parity, OfSegmentsOfAnyLengthBringsThemBack) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  for (int i = 0; i < 40; ++i) {
    const ParityShape shape{static_cast<std::uint32_t>(random.between(1, 5)),
                            static_cast<std::uint32_t>(random.between(1, 3))};
    std::vector<std::uint64_t> lengths(shape.members());
    for (auto& length : lengths) {
      length = random.coin() ? random.between(0, 40'000) : random.between(0, 3) * 4096;
    }
    SCOPED_TRACE(testing::Message() << "(" << shape.data << ", " << shape.parity
                                    << "): " << testing::PrintToString(lengths));
    MemoryGroup group(shape, lengths, random.between(0, 1 << 30));
    group.encode(random.coin());
    ASSERT_NO_FATAL_FAILURE(lose_every_set(group));
  }
}

TEST(Parity, OfAWideGroupBringsBackFour) {
  SCOPED_TRACE(replay());
  backstay::test::Random random;
  MemoryGroup whole({60, 4}, std::vector<std::uint64_t>(64, 60 * 4096), seed());
  whole.encode(false);
  for (int i = 0; i < 2; ++i) {
    std::set<std::uint32_t> lost;
    while (lost.size() < 4) lost.insert(static_cast<std::uint32_t>(random.between(0, 63)));
    MemoryGroup group = whole;
    ASSERT_NO_FATAL_FAILURE(group.lose_and_rebuild({lost.begin(), lost.end()}, false));
    ASSERT_TRUE(group.segments == whole.segments);
    ASSERT_TRUE(group.parities == whole.parities);
  }
}

}  // namespace
}  // namespace backstay::protect
