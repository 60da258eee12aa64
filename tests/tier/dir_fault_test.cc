// Each call of the tier fails once, in each way. The rule: an error is returned or everything is
// right; what was reported stays; a second try on the healed disk works.
#include <gtest/gtest.h>

#include "version_store.h"

namespace backstay::testing {
namespace {

struct Life {
  io::MemoryFileSystem fs;
  std::shared_ptr<io::Faults> faults;
  std::unique_ptr<io::FileSystem> faulty;
  Status first;
  Status second;
  Status removed;

  explicit Life(io::FaultPlan plan)
      : faults(std::make_shared<io::Faults>(plan)),
        faulty(io::make_faulty_filesystem(fs, faults)) {}

  // False where not even the tier could be opened.
  bool live() {
    auto tier = open_tier(*faulty, true, 1, faults);
    if (!tier.ok()) return false;
    first = commit_version(**tier, 1);
    if (first.ok()) removed = (*tier)->remove(folder_of(1));
    second = commit_version(**tier, 2);
    return true;
  }
};

// What must hold at any time after the life: nothing reported is gone, nothing committed is
// partial.
void check(const Life& life, tier::Tier& tier, const std::string& where) {
  std::string why;
  const bool one = is_committed(tier, 1, &why);
  const bool two = is_committed(tier, 2, &why);
  ASSERT_EQ(why, "") << where;
  ASSERT_TRUE(two || !life.second.ok()) << "reported and lost, " << where;
  ASSERT_TRUE(!one || !life.first.ok() || !life.removed.ok()) << "removed and there, " << where;
}

// The next process on the healed disk removes what is not committed and writes two versions.
void live_on(const Life& life, io::FileSystem& fs, const std::string& where) {
  auto tier = open_tier(fs, true);
  ASSERT_TRUE(is_ok(tier)) << where;
  std::string why;
  for (const std::uint64_t version : {1, 2}) {
    if (is_committed(**tier, version, &why)) continue;
    ASSERT_TRUE(is_ok((*tier)->remove(folder_of(version)))) << where;
  }
  for (const std::uint64_t version : {11, 12}) {
    ASSERT_TRUE(is_ok(commit_version(**tier, version))) << where;
    ASSERT_TRUE(is_committed(**tier, version, &why)) << where;
  }
  ASSERT_EQ(why, "") << where;
  check(life, **tier, "two more versions, " + where);
}

class DirTierFault : public ::testing::TestWithParam<io::Fault> {};

// Then the machine stops, under a seed (0: it does not), and goes on.
TEST_P(DirTierFault, EveryCallInTurn) {
  std::uint64_t failures = 0;
  bool reached = true;
  for (std::uint64_t at = 1; reached; ++at) {
    ASSERT_LT(at, 1'000u);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Life life({GetParam(), at});
      if (!life.live()) continue;
      reached = !life.faults->chosen().empty();
      const std::string where = "call " + std::to_string(at) + " " + life.faults->chosen() +
                                ", seed " + std::to_string(seed);
      failures += !life.first.ok() + !life.second.ok() + !life.removed.ok();
      if (seed > 0) life.fs.crash(seed);
      check(life, *open_tier(life.fs, false).value(), where);
      live_on(life, life.fs, where);
      if (HasFatalFailure()) return;
    }
  }
  const bool hidden =
      GetParam() == io::Fault::interrupted || GetParam() == io::Fault::short_transfer;
  EXPECT_EQ(failures == 0, hidden);
}

INSTANTIATE_TEST_SUITE_P(All, DirTierFault,
                         ::testing::Values(io::Fault::io, io::Fault::no_space,
                                           io::Fault::permission, io::Fault::interrupted,
                                           io::Fault::short_transfer, io::Fault::torn));

}  // namespace
}  // namespace backstay::testing
