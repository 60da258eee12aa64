// Random histories of up to 64 ranks. BACKSTAY_CUT_SEEDS: how many; BACKSTAY_TEST_SEED replays one.
#include "cut/chaos.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/seed.h"

namespace backstay::cut {
namespace {

std::uint64_t seeds() {
  const char* text = std::getenv("BACKSTAY_CUT_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 600;
}

struct Sum {
  std::uint64_t saved = 0, given_up = 0, histories = 0;
};

Sum play_some(const Limits& limits, std::uint64_t count) {
  Sum sum;
  const bool replay = std::getenv("BACKSTAY_TEST_SEED") != nullptr;
  for (std::uint64_t i = 0; i < (replay ? 1 : count); ++i) {
    const std::uint64_t seed = test::seed() + i;
    const Outcome outcome = play(seed, limits);
    EXPECT_EQ(outcome.broken, "") << "replay with BACKSTAY_TEST_SEED=" << seed;
    if (!outcome.broken.empty()) break;
    sum.saved += outcome.saved;
    sum.given_up += outcome.given_up;
    ++sum.histories;
  }
  return sum;
}

TEST(CutChaos, FewRanksWithAllFaults) {
  const Sum sum = play_some({6, 60, true}, 4 * seeds());
  if (sum.histories > 100) {
    EXPECT_GT(sum.saved, sum.histories / 2);
    EXPECT_GT(sum.given_up, 0U);
  }
}

TEST(CutChaos, ManyRanks) { play_some({64, 600, true}, seeds() / 20); }

}  // namespace
}  // namespace backstay::cut
