// Whole jobs under seeds (run.h). BACKSTAY_SIMULATED_RUNS says how many, BACKSTAY_SIMULATED_FIRST
// where they begin (1), BACKSTAY_TEST_SEED replays one of them.
#include "simulated_run/run.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace backstay::simulated {
namespace {

unsigned number(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(SimulatedRun, KeepsWhatItAnnounced) {
  const bool replay = std::getenv("BACKSTAY_TEST_SEED") != nullptr;
  const unsigned count = replay ? 1 : number("BACKSTAY_SIMULATED_RUNS", 200);
  const unsigned first = number("BACKSTAY_SIMULATED_FIRST", 1);
  SimulatedRun::Counts all;
  for (unsigned at = 0; at < count; ++at) {
    const std::uint64_t seed = replay ? test::seed() : first + at;
    test::Random random(seed);
    SimulatedRun run(seed, Settings::random(random));
    run.live(6);
    ASSERT_EQ(run.broken(), "") << "replay with BACKSTAY_TEST_SEED=" << seed << "\n"
                                << run.describe();
    if (replay) std::printf("%s\n", run.describe().c_str());
    all.steps += run.counts().steps;
    all.versions += run.counts().versions;
    all.restarts += run.counts().restarts;
    all.from_older += run.counts().from_older;
    all.needing += run.counts().needing;
    all.on_base += run.counts().on_base;
    all.on_restarted += run.counts().on_restarted;
    all.on_restarted_parity += run.counts().on_restarted_parity;
    for (const auto& [level, times] : run.counts().announced) all.announced[level] += times != 0;
  }
  std::printf(
      "%u runs: %llu steps, %llu versions, %llu of these with a base, %llu with one of another "
      "run on several nodes (%llu of them with parity), %llu parts that need older ones, "
      "%llu restarts, "
      "%llu versions skipped; with level "
      "local, protected, durable: %llu, %llu, %llu runs\n",
      count, static_cast<unsigned long long>(all.steps),
      static_cast<unsigned long long>(all.versions), static_cast<unsigned long long>(all.on_base),
      static_cast<unsigned long long>(all.on_restarted),
      static_cast<unsigned long long>(all.on_restarted_parity),
      static_cast<unsigned long long>(all.needing), static_cast<unsigned long long>(all.restarts),
      static_cast<unsigned long long>(all.from_older),
      static_cast<unsigned long long>(all.announced[Level::local]),
      static_cast<unsigned long long>(all.announced[Level::protected_]),
      static_cast<unsigned long long>(all.announced[Level::durable]));
}

}  // namespace
}  // namespace backstay::simulated
