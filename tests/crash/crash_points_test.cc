// The machine stops at a call of the writer, loses what was not synced, and starts again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "history.h"

namespace backstay::crash {
namespace {

using io::Fault;

// A short life that is the same in every run: three versions, one of them while the one before is
// still on its way to the disk.
void short_life(History& history) {
  if (!history.join()) return;
  history.take_version();
  history.settle();
  history.take_version();
  history.take_version();
  history.settle();
  history.take_version();
  history.settle();
}

std::uint64_t calls_of_short_life(std::uint64_t seed) {
  Machine machine(seed);
  machine.start_agent();
  History history(machine, seed, 2, 150'000);
  short_life(history);
  EXPECT_EQ(history.newest_reported(), 4u);
  return machine.calls();
}

TEST(CrashPoints, AtEveryCallOfTheWriter) {
  const std::uint64_t seed = base_seed();
  const std::uint64_t calls = calls_of_short_life(seed);
  ASSERT_GT(calls, 50u);
  for (std::uint64_t at = 1; at <= calls; ++at) {
    for (const Fault fault : {Fault::stop, Fault::stop_midway}) {
      for (std::uint64_t loss = 1; loss <= 3; ++loss) {
        Machine machine(seed);
        machine.start_agent({fault, at});
        History history(machine, seed, 2, 150'000);
        short_life(history);
        SCOPED_TRACE(
            fmt::format("call {} of {}: {} loss {}", at, calls, machine.struck_at(), loss));
        EXPECT_TRUE(machine.stopped());
        machine.crash(seed + loss);
        history.recover();
        if (HasFailure()) return;
      }
    }
  }
  std::printf("%llu calls, each stopped before and midway, 3 losses each\n",
              static_cast<unsigned long long>(calls));
}

// One history: one to three lives, each ended by a stop of the machine, by kill -9 of the agent, or
// by nothing, with a program, a disk and a pool drawn by the seed.
void one_history(std::uint64_t seed) {
  Random random(seed);
  Machine machine(seed);
  const auto ranks = static_cast<std::uint32_t>(random.between(1, 4));
  const std::uint64_t bytes_max = random.one_in(3) ? 5'000 : 300'000;
  History history(machine, seed, ranks, bytes_max);
  const auto lives = random.between(1, 3);
  for (std::uint64_t life = 0; life < lives && !::testing::Test::HasFailure(); ++life) {
    const Fault fault = random.one_in(2) ? Fault::stop : Fault::stop_midway;
    const auto buffers = static_cast<std::uint32_t>(random.between(2, 40));
    machine.start_agent({fault, random.between(1, 200)}, buffers);
    if (life > 0) history.agent_is_new();
    if (history.join()) history.live(static_cast<unsigned>(random.between(3, 12)));
    if (machine.stopped() || random.one_in(2)) {
      machine.crash(random.below(UINT64_MAX));
    } else {
      machine.kill_agent();
    }
    if (random.one_in(3) || life + 1 == lives) history.recover();
  }
}

TEST(CrashPoints, AtRandom) {
  const std::uint64_t points = from_environment("BACKSTAY_CRASH_POINTS", 200);
  for (std::uint64_t point = 0; point < points; ++point) {
    const std::uint64_t seed = base_seed() + point;
    SCOPED_TRACE(fmt::format("replay with BACKSTAY_SEED={} BACKSTAY_CRASH_POINTS=1", seed));
    one_history(seed);
    if (HasFailure()) return;
  }
  std::printf("%llu random crash points\n", static_cast<unsigned long long>(points));
}

}  // namespace
}  // namespace backstay::crash
