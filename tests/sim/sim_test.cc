// Whole runs with faults, one a seed. One of them again: BACKSTAY_SIM_SEEDS=1
// BACKSTAY_SEED=<number>.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "crash/seed.h"
#include "sim/chaos.h"

namespace backstay::sim {
namespace {

void expect_all_rules_kept(const Outcome& outcome, std::uint64_t seed) {
  for (const std::string& violation : outcome.violations) {
    ADD_FAILURE() << "BACKSTAY_SIM_SEEDS=1 BACKSTAY_SEED=" << seed << ": " << violation;
  }
}

TEST(Sim, SmallRunsWithAllFaults) {
  const std::uint64_t first = crash::base_seed();
  const std::uint64_t seeds = crash::from_environment("BACKSTAY_SIM_SEEDS", 200);
  Outcome sum;
  for (std::uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    const Outcome outcome = play(plan_of(seed), seed);
    expect_all_rules_kept(outcome, seed);
    sum.announcements += outcome.announcements;
    sum.barrier_rounds += outcome.barrier_rounds;
    sum.messages += outcome.messages;
    sum.ticks_to_heal = std::max(sum.ticks_to_heal, outcome.ticks_to_heal);
  }
  std::printf(
      "%llu runs: %llu messages, %llu announcements, %llu rounds of barriers; healed in at most %u "
      "ticks\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(sum.messages),
      static_cast<unsigned long long>(sum.announcements),
      static_cast<unsigned long long>(sum.barrier_rounds), sum.ticks_to_heal);
  // A history in which nothing is announced checks nothing.
  EXPECT_GT(sum.announcements, 20 * seeds);
  EXPECT_GT(sum.barrier_rounds, 2 * seeds);
}

TEST(Sim, ALargeRunWithAllFaults) {
  Plan plan;
  plan.nodes = static_cast<std::uint32_t>(crash::from_environment("BACKSTAY_SIM_NODES", 2047));
  plan.arity = 16;
  plan.chaos_ticks = 40;
  plan.weather.loss_percent = 3;
  plan.weather.double_percent = 3;
  plan.weather.late_percent = 1;
  plan.kills_percent = 80;
  plan.cuts_percent = 4;
  const std::uint64_t seed = crash::base_seed();
  const Outcome outcome = play(plan, seed);
  expect_all_rules_kept(outcome, seed);
  EXPECT_GT(outcome.announcements, 2 * plan.nodes);
  std::printf("%u nodes: %llu messages, at most %zu connections, healed in %u ticks\n", plan.nodes,
              static_cast<unsigned long long>(outcome.messages), outcome.connections_max,
              outcome.ticks_to_heal);
}

// Owners who break their side of the protocol are found out: the checker can fail.
TEST(Sim, FindsAnOwnerThatSaysRecordedTooEarly) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Plan plan = plan_of(seed);
    plan.nodes += 2;
    plan.says_recorded_too_early = true;
    found += play(plan, seed).violations.size();
  }
  EXPECT_GT(found, 0U);
}

TEST(Sim, FindsAnOwnerThatSaysHeldTooEarly) {
  Plan plan = plan_of(1);
  plan.disks_percent = 0;
  plan.says_held_too_early = true;
  EXPECT_FALSE(play(plan, 1).violations.empty());
}

TEST(Sim, OneSeedOneHistory) {
  const Outcome one = play(plan_of(7), 7);
  const Outcome again = play(plan_of(7), 7);
  EXPECT_EQ(one.messages, again.messages);
  EXPECT_EQ(one.announcements, again.announcements);
  EXPECT_NE(one.messages, play(plan_of(8), 8).messages);
}

}  // namespace
}  // namespace backstay::sim
