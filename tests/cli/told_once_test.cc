#include "bin/run/told_once.h"

#include <gtest/gtest.h>

namespace backstay::bin {
namespace {

TEST(ToldOnce, IsNewOncePerHostsAndKindOfTrouble) {
  ToldOnce told;
  EXPECT_TRUE(told.is_new("n1 n2", "version 7 has no copy: v0000007/segment: disk full"));
  EXPECT_FALSE(told.is_new("n1 n2", "version 18 has no copy: v0000018/segment: disk full"));
  EXPECT_TRUE(told.is_new("n1 n2", "version 18 has no copy: permission"));
  EXPECT_TRUE(told.is_new("n1 n3", "version 7 has no copy: v0000007/segment: disk full"));
}

TEST(ToldOnce, IsNewAgainOnceItWasOver) {
  ToldOnce told;
  EXPECT_TRUE(told.is_new("n1 n2", "disk full"));
  EXPECT_TRUE(told.is_new("n1 n3", "disk full"));
  told.forget("n1 n2");
  EXPECT_TRUE(told.is_new("n1 n2", "disk full"));
  EXPECT_FALSE(told.is_new("n1 n3", "disk full"));
}

}  // namespace
}  // namespace backstay::bin
