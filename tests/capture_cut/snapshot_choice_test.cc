#include "capture/companion/snapshot_choice.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/companion/kernel_work.h"

namespace backstay::image {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t small = 4 * mebibyte;
constexpr std::uint64_t large = 1024 * mebibyte;
constexpr std::uint64_t room = 2048 * mebibyte;

SnapshotChoice with_copy(std::string_view setting, double seconds = 0.2) {
  SnapshotChoice choice(setting);
  choice.copied(large, seconds);
  return choice;
}

TEST(SnapshotChoice, ASettingDecidesAlone) {
  EXPECT_TRUE(SnapshotChoice("fork").forks(small, room));
  EXPECT_TRUE(SnapshotChoice("fork").forks_late());
  EXPECT_FALSE(SnapshotChoice("copy").forks(large, small));
  EXPECT_FALSE(SnapshotChoice("copy").forks_late());
  EXPECT_FALSE(with_copy("copy", 10).forks(large, room));
}

TEST(SnapshotChoice, WhatDoesNotFitIsForked) {
  const SnapshotChoice choice("auto");
  EXPECT_TRUE(choice.forks(large, large - 1));
  EXPECT_FALSE(choice.forks(large, large));
  EXPECT_TRUE(choice.forks_late());
}

TEST(SnapshotChoice, WhatIsCheaperByWhatWasMeasured) {
  struct Row {
    const char* what;
    double copy_s, fork_s, slow_down_s;  // of large; fork_s < 0: none was taken
    std::uint64_t bytes;
    bool forks;
  };
  const Row rows[] = {
      {"a copy that takes long: a snapshot is tried", 0.2, -1, 0, large, true},
      {"a short copy needs none", 0.01, -1, 0, large, false},
      {"nor does one of few bytes", 0.2, -1, 0, small, false},
      {"a snapshot was cheaper", 0.2, 0.03, 0.05, large, true},
      {"the slow-down behind it was not", 0.2, 0.03, 0.3, large, false},
      {"the fork itself was not", 0.2, 0.25, 0, large, false},
      {"for half of the bytes it is not", 0.2, 0.03, 0.1, large / 2, false},
  };
  for (const Row& row : rows) {
    SnapshotChoice choice = with_copy("auto", row.copy_s);
    if (row.fork_s >= 0) choice.forked(row.fork_s, row.slow_down_s);
    EXPECT_EQ(choice.forks(row.bytes, room), row.forks) << row.what;
  }
}

int copies_behind_a_killed_one(std::string_view setting) {
  SnapshotChoice choice(setting);
  choice.killed();
  int copies = 0;
  for (; !choice.forks(large, small) && copies < 1000; ++copies) {
    EXPECT_FALSE(choice.forks_late());
    choice.copied(large, 0.2);
  }
  EXPECT_TRUE(choice.forks_late());
  return copies;
}

TEST(SnapshotChoice, OneThatIsKilledIsNotTriedAgainAtOnce) {
  EXPECT_EQ(copies_behind_a_killed_one("auto"), 16);
  EXPECT_EQ(copies_behind_a_killed_one("fork"), 1);
}

int copies_until_the_next_try(double slow_down_s) {
  SnapshotChoice choice = with_copy("auto");
  choice.forked(0.03, slow_down_s);
  int copies = 0;
  while (!choice.forks(large, room) && copies < 1000) {
    choice.copied(large, 0.2);
    ++copies;
  }
  return copies;
}

TEST(SnapshotChoice, WhatWasDearIsTriedAgain) { EXPECT_EQ(copies_until_the_next_try(0.2), 16); }

TEST(SnapshotChoice, ATryCostsATenthOfTheCopiesBeforeIt) {
  EXPECT_EQ(copies_until_the_next_try(1.98), 101);  // 2.01 s beside 0.2 s each
}

TEST(SlowDown, IsTheTimeInTheKernelThatFaultsExplain) {
  EXPECT_DOUBLE_EQ(slow_down_s({100, 1.0}, {100100, 1.25}), 0.25);
  EXPECT_DOUBLE_EQ(slow_down_s({100, 1.0}, {1100, 1.25}), 0.01);
  EXPECT_DOUBLE_EQ(slow_down_s({100, 1.0}, {0, 0}), 0);  // it has ended
}

TEST(SlowDown, IsReadOfAProcess) {
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_minflt);
  };
  const std::uint64_t before = faults();
  const KernelWork work = kernel_work_of(::getpid());
  EXPECT_GE(work.faults, before);
  EXPECT_LE(work.faults, faults());
  EXPECT_EQ(kernel_work_of(-1).faults, 0U);
}

}  // namespace
}  // namespace backstay::image
