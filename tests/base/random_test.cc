#include "base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace backstay {
namespace {

TEST(SplitMix64, GivesTheSequenceOfTheReference) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
  EXPECT_EQ(random.next(), 4593380528125082431u);
  EXPECT_EQ(random.next(), 16408922859458223821u);
}

TEST(SplitMix64, BelowIsTheHighHalfOfAProduct) {
  SplitMix64 whole(7);
  SplitMix64 parts(7);
  for (const std::uint32_t end : {1u, 2u, 3u, 1000u, 0x80000001u, 0xffffffffu}) {
    __extension__ using Wide = unsigned __int128;
    EXPECT_EQ(parts.below(end), static_cast<std::uint32_t>(Wide{whole.next()} * end >> 64));
  }
}

TEST(SplitMix64, BelowFillsItsRangeEvenly) {
  SplitMix64 random(1);
  std::array<int, 6> seen{};
  for (int i = 0; i < 60'000; ++i) ++seen.at(random.below(6));
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 500);  // over 5 standard deviations
}

}  // namespace
}  // namespace backstay
