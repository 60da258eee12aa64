// A build without ISA-L: combination_absent.cc replaces the library's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "protect/combination.h"

namespace backstay::protect {
namespace {

TEST(WithoutIsal, ParityIsRefusedAndSaysWhatToDo) {
  const auto refused =
      Combination::make({1, 1}, std::array<std::uint32_t, 1>{1}, std::array<std::uint32_t, 1>{0});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unsupported);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("libisal-dev"));
}

}  // namespace
}  // namespace backstay::protect
