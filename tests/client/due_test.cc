// When a checkpoint is due: the formula, the distance between agreements, and that all ranks answer
// alike.
#include "client/due.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "client/due_policy.h"
#include "thread_group.h"

namespace backstay::client::test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t millisecond = 1'000'000;

class FakeRequests final : public RequestSource {
 public:
  explicit FakeRequests(std::uint32_t asked = 0) : count(asked) {}
  std::uint32_t requests() override { return count; }
  bool stop_requested() override { return stop; }
  bool checkpoint_signalled() override { return signalled; }
  bool stop_signalled() override { return stop_signal; }
  void clear_checkpoint_signal() override { signalled = false; }
  bool forward(bool with_stop) override {
    if (!reachable) return false;
    forwarded.push_back(with_stop);
    return true;
  }
  std::uint32_t count = 0;
  bool stop = false;
  bool signalled = false;
  bool stop_signal = false;
  bool reachable = true;
  std::vector<bool> forwarded;
};

Config::Checkpoint policy(const std::string& name) {
  Config::Checkpoint config;
  config.policy = name;
  return config;
}

// --- the formula ---------------------------------------------------------------------------------

TEST(Daly, IsTheHigherOrderOptimum) {
  // By hand: d = 60 s, M = 24 h: sqrt(2 d M) = 3219.94, d / 2M = 3.4722e-4.
  const double root = std::sqrt(2.0 * 60 * 86400);
  const double ratio = 60.0 / (2 * 86400);
  EXPECT_NEAR(daly_interval_s(60, 86400), root * (1 + std::sqrt(ratio) / 3 + ratio / 9) - 60, 1e-9);
  EXPECT_NEAR(daly_interval_s(60, 86400), 3180.06, 0.01);
  EXPECT_NEAR(daly_interval_s(0.05, 86400), 92.92, 0.01);
}

TEST(Daly, IsTheMttiWhereACheckpointCostsMoreThanTwiceOfIt) {
  EXPECT_EQ(daly_interval_s(200, 100), 100);
  EXPECT_EQ(daly_interval_s(1000, 100), 100);
  EXPECT_GT(daly_interval_s(199, 100), 0);
}

TEST(Daly, GrowsWithTheCostAndIsTheMinimumOfLostTime) {
  // Expected time per useful second of the exponential model; the optimum must beat its neighbours.
  const auto lost = [](double interval, double cost, double mtti) {
    return mtti * (std::exp((interval + cost) / mtti) - 1) / interval;
  };
  for (const double cost : {0.1, 10.0, 300.0}) {
    const double mtti = 3600;
    const double best = daly_interval_s(cost, mtti);
    EXPECT_LT(lost(best, cost, mtti), lost(best * 1.1, cost, mtti)) << cost;
    EXPECT_LT(lost(best, cost, mtti), lost(best * 0.9, cost, mtti)) << cost;
    EXPECT_GT(daly_interval_s(cost * 2, mtti), best);
  }
}

TEST(Policy, DalyFollowsTheMeasuredCost) {
  ManualClock clock;
  auto config = policy("daly");
  config.mtti_s = 3600;
  DuePolicy daly(config, clock);
  const auto now = clock.monotonic_ns();
  daly.captured(now - 2 * second, now);
  EXPECT_NEAR(daly.interval_s(), daly_interval_s(2, 3600), 1e-6);
  EXPECT_FALSE(daly.time_is_up());
  clock.advance(static_cast<std::uint64_t>((daly_interval_s(2, 3600) - 1) * 1e9));
  EXPECT_FALSE(daly.time_is_up());
  clock.advance(2 * second);
  EXPECT_TRUE(daly.time_is_up());
  daly.captured(now - 4 * second, now);  // the cost is smoothed: 0.5 * 4 + 0.5 * 2
  EXPECT_NEAR(daly.interval_s(), daly_interval_s(3, 3600), 1e-6);
}

TEST(Policy, IntervalCountsFromTheStartOfTheLastOne) {
  ManualClock clock;
  auto config = policy("interval");
  config.interval_s = 10;
  DuePolicy interval(config, clock);
  clock.advance(10 * second - 1);
  EXPECT_FALSE(interval.time_is_up());
  clock.advance(1);
  EXPECT_TRUE(interval.time_is_up());
  const auto began = clock.monotonic_ns();
  clock.advance(3 * second);
  interval.captured(began, clock.monotonic_ns());
  clock.advance(7 * second - 1);
  EXPECT_FALSE(interval.time_is_up());
  clock.advance(1);
  EXPECT_TRUE(interval.time_is_up());
}

TEST(Policy, WaitsAfterAFailure) {
  ManualClock clock;
  auto config = policy("interval");
  config.interval_s = 4;
  DuePolicy interval(config, clock);
  clock.advance(5 * second);
  interval.failed();
  EXPECT_FALSE(interval.may_try());
  clock.advance(4 * second);
  EXPECT_TRUE(interval.may_try());
}

// --- one rank ------------------------------------------------------------------------------------

struct OneRank {
  explicit OneRank(const Config::Checkpoint& config, std::uint32_t asked_before = 0)
      : requests(asked_before), due(config, group, clock, requests) {}
  // Calls with `step` between them until one is due; how many calls that took, 0 after `most`.
  int calls_until_due(std::uint64_t step, int most) {
    for (int call = 1; call <= most; ++call) {
      clock.advance(step);
      if (due.call()) return call;
    }
    return 0;
  }
  Group group;
  ManualClock clock;
  FakeRequests requests;
  Due due;
};

TEST(Due, AsksAtEveryCallWhereCallsAreSlow) {
  OneRank one(policy("request"));
  for (int call = 0; call < 20; ++call) {
    one.clock.advance(60 * millisecond);
    EXPECT_FALSE(one.due.call());
    EXPECT_EQ(one.due.stride(), 1U);
  }
  one.requests.count = 1;
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 2), 1);
}

TEST(Due, AsksAboutEveryFiftyMillisecondsWhereCallsAreQuick) {
  OneRank one(policy("request"));
  EXPECT_EQ(one.calls_until_due(100'000, 100'000), 0);
  EXPECT_NEAR(one.due.stride(), 500, 5);  // 100 us a call
  one.requests.count = 1;
  const int calls = one.calls_until_due(100'000, 20'000);
  EXPECT_GT(calls, 0);
  EXPECT_LE(calls, 510);
}

TEST(Due, SeesARequestAfterABoundedNumberOfCallsHoweverQuickTheyWere) {
  OneRank one(policy("request"));
  EXPECT_EQ(one.calls_until_due(100, 1'000'000), 0);
  EXPECT_EQ(one.due.stride(), 1024U);
  one.requests.count = 1;
  EXPECT_GT(one.calls_until_due(1'000 * millisecond, 1025), 0);
}

TEST(Due, ARequestThatCameBeforeTheFirstCallCounts) {
  OneRank one(policy("request"), 1);  // asked between the program's hello and its first call
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 2), 1);
}

TEST(Due, AsksMoreOftenOnceCallsBecomeSlow) {
  OneRank one(policy("request"));
  EXPECT_EQ(one.calls_until_due(millisecond, 10'000), 0);
  EXPECT_NEAR(one.due.stride(), 50, 2);
  EXPECT_EQ(one.calls_until_due(100 * millisecond, 60), 0);
  EXPECT_EQ(one.due.stride(), 1U);
}

TEST(Due, FollowsAShortIntervalCloselyEnough) {
  auto config = policy("interval");
  config.interval_s = 0.1;
  OneRank one(config);
  EXPECT_EQ(one.calls_until_due(100'000, 100'000) / 50, 1000 / 50);  // 100 ms in steps of 0.1 ms
}

TEST(Due, EveryNthCall) {
  auto config = policy("calls");
  config.every_calls = 7;
  OneRank one(config);
  for (int call = 1; call <= 100; ++call) {
    EXPECT_EQ(one.due.call(), call % 7 == 0) << call;
  }
}

TEST(Due, PolicyCallsStillSeesRequests) {
  auto config = policy("calls");
  config.every_calls = 1'000'000;
  OneRank one(config);
  EXPECT_EQ(one.calls_until_due(millisecond, 500), 0);
  one.requests.count = 3;
  EXPECT_GT(one.calls_until_due(millisecond, 200), 0);
}

TEST(Due, ARequestIsAnsweredByOneCheckpoint) {
  OneRank one(policy("request"));
  one.requests.count = 2;
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 1), 1);
  one.due.checkpoint_begins();
  one.requests.count = 3;  // while the checkpoint is taken
  one.due.checkpoint_captured();
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 1), 1) << "that one came too late for it";
  one.due.checkpoint_begins();
  one.due.checkpoint_captured();
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 50), 0);
}

TEST(Due, ACheckpointCostsWhatTheProgramStoodStill) {
  auto config = policy("daly");
  config.mtti_s = 1000;
  OneRank whole(config);
  whole.due.checkpoint_begins();
  whole.clock.advance(100 * second);
  whole.due.checkpoint_captured();
  EXPECT_EQ(whole.calls_until_due(second, 100), 0);
  OneRank forked(config);  // it ran on for the most part: sqrt(2 x 0.1 s x 1000 s) are over
  forked.due.checkpoint_begins();
  forked.clock.advance(100 * second);
  forked.due.checkpoint_captured(100 * millisecond);
  EXPECT_EQ(forked.calls_until_due(second, 100), 1);
}

TEST(Due, ARequestThatFailedIsTriedAgainLater) {
  OneRank one(policy("request"));
  one.requests.count = 1;
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 1), 1);
  one.due.checkpoint_begins();
  one.due.checkpoint_failed();
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 10), 0);
  EXPECT_GT(one.calls_until_due(second, 20), 0);
}

TEST(Due, AnotherAgentCountsAnew) {
  OneRank one(policy("request"));
  one.requests.count = 5;
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 1), 1);
  one.due.checkpoint_begins();
  one.due.checkpoint_captured();
  one.requests.count = 0;
  one.due.agent_changed();
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 20), 0);
  one.requests.count = 1;
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 2), 1);
}

TEST(Due, ARequestThatComesBeforeAllRanksHaveTheOtherAgentIsOpen) {
  OneRank one(policy("request"));
  one.requests.count = 1;
  one.due.checkpoint_begins();
  one.due.checkpoint_captured();
  one.requests.count = 1;  // of the other agent
  one.due.agent_changed();
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 2), 1);
}

TEST(Due, StopMeansOneMoreCheckpoint) {
  OneRank one(policy("request"));
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 1), 0);
  one.requests.stop_signal = true;
  EXPECT_FALSE(one.due.stop_requested()) << "changes only inside of due()";
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 1), 1);
  EXPECT_TRUE(one.due.stop_requested());
  one.due.checkpoint_begins();
  one.due.checkpoint_captured();
  EXPECT_EQ(one.calls_until_due(60 * millisecond, 20), 0);
  EXPECT_TRUE(one.due.stop_requested());
}

// --- many ranks ----------------------------------------------------------------------------------

TEST(Due, AllRanksAnswerAlikeThoughTheirClocksDiffer) {
  ThreadGroup job(4);
  std::vector<std::vector<int>> due_calls(4);
  job.run([&](const Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    auto config = policy("interval");
    config.interval_s = 0.5;
    ManualClock clock;
    FakeRequests requests;
    Due due(config, group, clock, requests);
    for (int call = 1; call <= 3000; ++call) {
      clock.advance((rank + 1) * 700'000);  // the other ranks' clocks must not matter
      if (!due.call()) continue;
      due_calls[rank].push_back(call);
      due.checkpoint_begins();
      due.checkpoint_captured();
    }
  });
  EXPECT_NEAR(static_cast<double>(due_calls[0].size()), 3000 * 0.0007 / 0.5, 1.01);
  for (const auto& calls : due_calls) EXPECT_EQ(calls, due_calls[0]);
}

TEST(Due, ASignalAtAnyRankReachesAll) {
  for (const bool stop : {false, true}) {
    ThreadGroup job(3);
    FakeRequests shared;  // what rank 0 sees: the agent's control page
    std::vector<int> answers(3);
    std::vector<int> stops(3);
    job.run([&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      ManualClock clock;
      FakeRequests own;
      FakeRequests& requests = rank == 0 ? shared : own;
      if (rank == 2) (stop ? own.stop_signal : own.signalled) = true;
      Due due(policy("request"), group, clock, requests);
      for (int call = 0; call < 6; ++call) {
        clock.advance(60 * millisecond);
        if (due.call()) ++answers[rank];
        // The agent: what was forwarded shows up on the page.
        (void)group.minimum(0);
        if (rank == 2 && !own.forwarded.empty()) {
          shared.count = static_cast<std::uint32_t>(own.forwarded.size());
          shared.stop = own.forwarded.back();
        }
        (void)group.minimum(0);
      }
      stops[rank] = due.stop_requested() ? 1 : 0;
      EXPECT_EQ(own.forwarded.size(), rank == 2 ? 1U : 0U) << "forwarded once";
    });
    EXPECT_GT(answers[0], 0);
    EXPECT_EQ(std::set<int>(answers.begin(), answers.end()).size(), 1U);
    EXPECT_EQ(stops, std::vector<int>(3, stop ? 1 : 0));
  }
}

TEST(Due, ASignalWaitsForAnAgent) {
  ThreadGroup job(2);
  job.run([&](const Group& group) {
    ManualClock clock;
    FakeRequests own;
    own.signalled = group.rank() == 1;
    own.reachable = false;
    Due due(policy("request"), group, clock, own);
    clock.advance(second);
    EXPECT_FALSE(due.call());
    own.reachable = true;
    clock.advance(second);
    EXPECT_FALSE(due.call());
    EXPECT_EQ(own.forwarded.size(), group.rank() == 1 ? 1U : 0U);
  });
}

}  // namespace
}  // namespace backstay::client::test
