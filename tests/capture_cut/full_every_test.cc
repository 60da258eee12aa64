#include "capture/companion/full_every.h"

#include <gtest/gtest.h>

#include <string>

namespace backstay::image {
namespace {

// One letter a version: full, or kept. The program writes `changed` of 100 bytes between two.
std::string history(FullEvery& every, int versions, std::uint64_t changed) {
  std::string all;
  for (int i = 0; i < versions; ++i) {
    const FullEvery::Cut cut = every.next(every.wants_base());
    all += cut.keeps ? 'k' : 'f';
    every.taken(100, cut.keeps ? 100 - changed : 0);
  }
  return all;
}

TEST(FullEvery, TheFirstAndEveryNthIsFull) {
  FullEvery four(4);
  EXPECT_EQ(history(four, 10, 5), "fkkkfkkkfk");
  FullEvery one(1);
  EXPECT_EQ(history(one, 3, 5), "fff");
  EXPECT_FALSE(one.next(true).watches);
  FullEvery two(2);
  EXPECT_EQ(history(two, 5, 5), "fkfkf");
}

TEST(FullEvery, WritesAreNotWatchedBeforeAFullOne) {
  FullEvery two(2);
  EXPECT_TRUE(two.next(false).watches);
  two.taken(100, 0);
  EXPECT_FALSE(two.next(two.wants_base()).watches);
}

TEST(FullEvery, WithoutABaseItIsFullAndBeginsAnew) {
  FullEvery every(8);
  EXPECT_EQ(history(every, 3, 5), "fkk");
  EXPECT_FALSE(every.next(/*has_base=*/false).keeps);
  every.taken(100, 0);
  EXPECT_EQ(history(every, 8, 5), "kkkkkkkf");
}

TEST(FullEvery, ARestartGoesOnWithTheChainOfItsVersion) {
  FullEvery before(4);
  EXPECT_EQ(history(before, 2, 5), "fk");
  EXPECT_TRUE(before.next(before.wants_base()).keeps);
  EXPECT_EQ(before.chain(), 2u);
  FullEvery after(4);
  ASSERT_TRUE(after.may_follow(before.chain()));
  after.restarted(before.chain());
  EXPECT_EQ(history(after, 6, 5), "kfkkkf");
  EXPECT_FALSE(after.may_follow(3)) << "the next one is full";
  FullEvery not_watched(4);
  EXPECT_EQ(history(not_watched, 3, 5), "fkk");
}

TEST(FullEvery, AfterAFailureItIsFull) {
  FullEvery every(8);
  EXPECT_EQ(history(every, 2, 5), "fk");
  (void)every.next(true);
  every.failed();
  EXPECT_EQ(history(every, 2, 5), "fk");
}

TEST(FullEvery, AProgramThatWritesMostOfItsPagesIsLeftAlone) {
  FullEvery every(3);
  EXPECT_EQ(history(every, 2, 80), "fk");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(every.wants_base()) << i;
    const FullEvery::Cut cut = every.next(false);
    EXPECT_FALSE(cut.keeps || cut.watches) << i;
    every.taken(100, 0);
  }
  EXPECT_TRUE(every.next(false).watches);
}

// The second program writes most of its pages. Both ranks begin each chain at the same version.
TEST(FullEvery, RanksOfOneJobEndAChainAtTheSameVersion) {
  FullEvery first(4), second(4);
  std::string of_first, of_second;
  for (int i = 0; i < 9; ++i) {
    const bool has_base = first.wants_base() || second.wants_base();
    const FullEvery::Cut one = first.next(has_base), other = second.next(has_base);
    of_first += one.keeps ? 'k' : 'f';
    of_second += other.keeps ? 'k' : 'f';
    first.taken(100, one.keeps ? 95 : 0);
    second.taken(100, other.keeps ? 20 : 0);
  }
  EXPECT_EQ(of_first, "fkkkfkkkf");
  EXPECT_EQ(of_second, "fkfffffkf");
}

TEST(FullEvery, WhereNothingWasKeptItIsFull) {
  FullEvery every(3);
  EXPECT_EQ(history(every, 2, 100), "fk");
  EXPECT_FALSE(every.wants_base());
  EXPECT_FALSE(every.next(false).keeps);
}

}  // namespace
}  // namespace backstay::image
