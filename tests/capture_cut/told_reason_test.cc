#include "capture/companion/told_reason.h"

#include <gtest/gtest.h>

namespace backstay::image {
namespace {

using namespace std::chrono_literals;
const ToldReason::Time start{};

TEST(ToldReason, OneThatPassesIsToldWhereItLasts) {
  ToldReason reason("has not begun");
  EXPECT_FALSE(reason.hear("rank 1 has not begun", start));
  EXPECT_FALSE(reason.hear("rank 1 has not begun", start + 9s));
  EXPECT_TRUE(reason.hear("rank 1 has not begun", start + 10s));
  EXPECT_FALSE(reason.hear("rank 1 has not begun", start + 20s));
}

TEST(ToldReason, ItsTimeBeginsAnewBehindAVersion) {
  ToldReason reason("has not begun");
  EXPECT_FALSE(reason.hear("rank 1 has not begun", start));
  reason.saved();
  EXPECT_FALSE(reason.hear("rank 1 has not begun", start + 11s));
  EXPECT_TRUE(reason.hear("rank 1 has not begun", start + 21s));
}

TEST(ToldReason, OneThatComesAgainBehindAVersionIsNotToldAgain) {
  ToldReason reason("has not begun");
  EXPECT_TRUE(reason.hear("a file is open", start));
  reason.saved();
  EXPECT_FALSE(reason.hear("a file is open", start + 60s));
}

TEST(ToldReason, OthersAreToldAtOnceAndOnce) {
  ToldReason reason("has not begun");
  EXPECT_TRUE(reason.hear("a window is open", start));
  EXPECT_FALSE(reason.hear("a window is open", start + 60s));
  EXPECT_FALSE(reason.hear("rank 0 has not begun", start + 60s));
  EXPECT_FALSE(reason.hear("a window is open", start + 61s));
  EXPECT_TRUE(reason.hear("a file is open", start + 62s));
  EXPECT_FALSE(reason.hear("a window is open", start + 63s));
}

TEST(ToldReason, OneOfSeveralRanksIsToldOnce) {
  ToldReason reason("has not begun");
  EXPECT_TRUE(reason.hear("rank 1 (n1): it has a window of MPI open", start));
  EXPECT_FALSE(reason.hear("rank 0 (n0): it has a window of MPI open", start + 1s));
  EXPECT_TRUE(reason.hear("rank 0 (n0): it has a file of MPI open", start + 2s));
  EXPECT_FALSE(reason.hear("rank 1 (n1): it has a window of MPI open", start + 3s));
}

}  // namespace
}  // namespace backstay::image
