#include "agent/redundancy/network_pause.h"

#include <gtest/gtest.h>

namespace backstay::agent {
namespace {

TEST(NetworkPause, LastsAsLongAsRanksCopyButNotForEver) {
  NetworkPause quiet;
  EXPECT_FALSE(quiet.update(false, 1));
  EXPECT_EQ(quiet.ends_ns(), no_deadline);
  EXPECT_TRUE(quiet.update(true, 10));
  EXPECT_TRUE(quiet.on());
  EXPECT_EQ(quiet.ends_ns(), 10 + NetworkPause::max_ns);
  EXPECT_FALSE(quiet.update(true, 9 + NetworkPause::max_ns));
  EXPECT_TRUE(quiet.update(true, 10 + NetworkPause::max_ns)) << "long enough";
  EXPECT_FALSE(quiet.on());
  EXPECT_EQ(quiet.ends_ns(), no_deadline);
  EXPECT_FALSE(quiet.update(true, 11 + 2 * NetworkPause::max_ns))
      << "not again for the same version";
  EXPECT_FALSE(quiet.update(false, 12 + 2 * NetworkPause::max_ns));
  EXPECT_TRUE(quiet.update(true, 13 + 2 * NetworkPause::max_ns));
  EXPECT_TRUE(quiet.update(false, 14 + 2 * NetworkPause::max_ns)) << "all have copied";
  EXPECT_FALSE(quiet.on());
}

}  // namespace
}  // namespace backstay::agent
