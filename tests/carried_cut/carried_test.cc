// Random runs with their agents. BACKSTAY_CUT_SEEDS: how many; BACKSTAY_TEST_SEED replays one.
#include "carried_cut/carried.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/seed.h"

namespace backstay::agent::test {
namespace {

std::uint64_t seeds() {
  const char* text = std::getenv("BACKSTAY_CUT_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 60;
}

Outcome play_some(const Limits& limits, std::uint64_t count) {
  Outcome sum;
  const bool replay = std::getenv("BACKSTAY_TEST_SEED") != nullptr;
  for (std::uint64_t i = 0; i < (replay ? 1 : count); ++i) {
    const std::uint64_t seed = ::backstay::test::seed() + i;
    Outcome outcome = CarriedRun(seed, limits).play();
    EXPECT_EQ(outcome.broken, "") << "replay with BACKSTAY_TEST_SEED=" << seed;
    if (!outcome.broken.empty()) break;
    sum.complete += outcome.complete;
    sum.saved += outcome.saved;
    sum.given_up += outcome.given_up;
    sum.faults += outcome.faults;
    sum.reasons.merge(outcome.reasons);
  }
  return sum;
}

TEST(CarriedCut, EachRequestIsServedWhereNothingFails) {
  for (const std::uint32_t nodes : {1U, 2U, 5U, 16U}) {
    const Outcome sum = play_some({.nodes = nodes}, seeds() / 4);
    EXPECT_EQ(sum.saved, sum.complete);
    EXPECT_GE(sum.saved, seeds() / 4);
  }
}

TEST(CarriedCut, AgentsDieAndConnectionsEnd) {
  const Outcome sum = play_some({.nodes = 7, .ranks_a_node = 2, .asks = 4, .faults = 6}, seeds());
  EXPECT_GT(sum.given_up, 0U);
  EXPECT_GT(sum.saved, 0U);
}

TEST(CarriedCut, ARankDies) {
  const Outcome sum =
      play_some({.nodes = 4, .ranks_a_node = 2, .faults = 3, .ranks_die = true}, seeds());
  EXPECT_GT(sum.given_up, 0U);
}

}  // namespace
}  // namespace backstay::agent::test
