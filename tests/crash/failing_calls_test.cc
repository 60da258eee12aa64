// Each call of the writer fails in turn, once; the agent lives on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "history.h"

namespace backstay::crash {
namespace {

using io::Fault;

struct Case {
  Fault fault;
  const char* name;
  bool harmless;  // the call still succeeds: nothing may be noticed
};

class FailingCalls : public ::testing::TestWithParam<Case> {};

// The same in every run until the fault strikes. The number of checkpoints that failed.
int life(History& history, Machine& machine, io::FaultPlan plan) {
  machine.start_agent(plan);
  if (!history.join()) {  // the server forgets such a job; the next hello makes it again
    EXPECT_TRUE(machine.struck());
    machine.start_agent();
    history.agent_is_new();
    EXPECT_TRUE(history.join());
  }
  int failed = 0;
  for (int turn = 0; turn < 4; ++turn) {
    failed += history.take_version() == Code::ok ? 0 : 1;
    if (turn != 1) history.settle();  // version 3 begins while version 2 is on its way
    if (turn == 2) history.restart(!machine.struck());
  }
  return failed;
}

// Told captured, then local; then all again after the machine has lost what was not synced.
TEST_P(FailingCalls, EveryOneInTurn) {
  const std::uint64_t seed = base_seed();
  const auto run = [seed](io::FaultPlan plan) {
    Machine machine(seed);
    History history(machine, seed, 2, 150'000);
    const int failed = life(history, machine, plan);
    SCOPED_TRACE(fmt::format("{} at call {}: {}", GetParam().name, plan.at, machine.struck_at()));
    if (GetParam().harmless) {
      EXPECT_EQ(failed, 0);
      EXPECT_EQ(history.newest_local(), 4u);
    }
    history.restart(/*healthy=*/true);
    EXPECT_EQ(history.take_version(), Code::ok);
    history.settle();
    EXPECT_EQ(history.newest_local(), history.newest_reported()) << history.describe();
    const std::uint64_t calls = machine.calls();
    machine.crash(seed + plan.at);
    history.recover();
    return calls;
  };
  Machine machine(seed);
  History history(machine, seed, 2, 150'000);
  EXPECT_EQ(life(history, machine, {}), 0);
  const std::uint64_t calls = machine.calls();
  ASSERT_GT(calls, 50u);
  for (std::uint64_t at = 0; at <= calls && !HasFailure(); ++at) {
    run({at == 0 ? Fault::none : GetParam().fault, at});
  }
  std::printf("%llu calls\n", static_cast<unsigned long long>(calls));
}

INSTANTIATE_TEST_SUITE_P(All, FailingCalls,
                         ::testing::Values(Case{Fault::io, "EIO", false},
                                           Case{Fault::no_space, "ENOSPC", false},
                                           Case{Fault::permission, "EACCES", false},
                                           Case{Fault::torn, "half_done_then_EIO", false},
                                           Case{Fault::flip, "a_bit_of_a_read", false},
                                           Case{Fault::interrupted, "EINTR", true},
                                           Case{Fault::short_transfer, "short_transfer", true}),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace backstay::crash
