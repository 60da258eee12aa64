#include "bin/run/keeper_of.h"

#include <gtest/gtest.h>

namespace backstay::bin {
namespace {

using Hosts = std::vector<std::string>;

TEST(KeeperOf, IsTheNextHostAtTheFirstTryAndThenEachOther) {
  const Hosts hosts{"n0", "n1", "n2", "n3"};
  Hosts tried;
  for (std::size_t at = 0; at < 5; ++at) tried.push_back(keeper_of("n2", hosts, at));
  EXPECT_EQ(tried, (Hosts{"n3", "n0", "n1", "n3", "n0"}));
  EXPECT_EQ(keeper_of("n3", hosts, 0), "n0");
}

TEST(KeeperOf, IsNeverTheOwnerNorAnyoneWhereItIsAlone) {
  EXPECT_EQ(keeper_of("n0", {"n0"}, 0), "");
  EXPECT_EQ(keeper_of("n0", {}, 0), "");
  EXPECT_EQ(keeper_of("n0", {"n0", "n0"}, 1), "") << "a list may name a host for each of its slots";
  EXPECT_EQ(keeper_of("n0", {"n0", "n1", "n0"}, 1), "n1");
}

TEST(KeeperOf, OfAHostThatTheListDoesNotNameIsTheFirst) {
  EXPECT_EQ(keeper_of("n9", {"n0", "n1"}, 0), "n0");
  EXPECT_EQ(keeper_of("n9", {"n0", "n1"}, 1), "n1");
}

TEST(PauseBeforeNext, IsDoubledWithEachStartInVainUpToALimit) {
  constexpr std::uint64_t second = 1'000'000'000;
  EXPECT_EQ(pause_before_next_ns(0), 2 * second) << "it has worked";
  EXPECT_EQ(pause_before_next_ns(1), 2 * second);
  EXPECT_EQ(pause_before_next_ns(2), 4 * second);
  EXPECT_EQ(pause_before_next_ns(10), 1024 * second);
  EXPECT_EQ(pause_before_next_ns(100'000), 1024 * second);
}

}  // namespace
}  // namespace backstay::bin
