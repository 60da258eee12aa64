#include "capture/companion/full_every.h"

#include <gtest/gtest.h>

#include <string>

namespace backstay::image {
namespace {

// One letter a version: full, or kept. The program writes `changed` of 100 bytes between two.
std::string history(FullEvery& every, int versions, std::uint64_t changed) {
  std::string all;
  for (int i = 0; i < versions; ++i) {
    const FullEvery::Cut cut = every.next(/*has_base=*/true);
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
  EXPECT_TRUE(two.next(true).watches);
  two.taken(100, 0);
  EXPECT_FALSE(two.next(true).watches);
}

TEST(FullEvery, WithoutABaseItIsFullAndBeginsAnew) {
  FullEvery every(8);
  EXPECT_EQ(history(every, 3, 5), "fkk");
  EXPECT_FALSE(every.next(/*has_base=*/false).keeps);
  every.taken(100, 0);
  EXPECT_EQ(history(every, 8, 5), "kkkkkkkf");
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
    const FullEvery::Cut cut = every.next(true);
    EXPECT_FALSE(cut.keeps || cut.watches) << i;
    every.taken(100, 0);
  }
  EXPECT_TRUE(every.next(true).watches);
}

TEST(FullEvery, WhereNothingWasKeptItIsFull) {
  FullEvery every(3);
  EXPECT_EQ(history(every, 2, 100), "fk");
  EXPECT_FALSE(every.next(true).keeps);
}

}  // namespace
}  // namespace backstay::image
