#include "cut/rank.h"

#include <gtest/gtest.h>

namespace backstay::cut {
namespace {

Order order(Order::What what, std::uint32_t round = 1, std::vector<Order::Target> targets = {},
            std::vector<Need> needs = {}) {
  return {1, what, round, std::move(targets), std::move(needs)};
}

// The last report among what the rank puts out.
Report last_report(Rank& rank) {
  Report last;
  for (const RankOutput& output : rank.take()) {
    if (const auto* report = std::get_if<Report>(&output)) last = *report;
  }
  return last;
}

template <typename T>
bool puts_out(Rank& rank) {
  bool found = false;
  for (const RankOutput& output : rank.take()) found = found || std::holds_alternative<T>(output);
  return found;
}

TEST(CutRank, SaysNothingWithoutACut) {
  Rank rank(0, 2);
  rank.open(0);
  EXPECT_TRUE(rank.may_begin(0));
  rank.sent(1);
  rank.took_in(1);
  EXPECT_TRUE(rank.take().empty());
  EXPECT_EQ(rank.begun(0), 1U);
}

TEST(CutRank, HoldsCollectiveCallsUntilTargetsAreHigher) {
  Rank rank(0, 2);
  rank.open(0);
  rank.may_begin(0);
  rank.receive(order(Order::What::run_on));
  EXPECT_EQ(last_report(rank).reached, 1U);
  EXPECT_FALSE(rank.may_begin(0));
  rank.receive(order(Order::What::run_on, 2, {{0, 2}}));
  EXPECT_TRUE(puts_out<Wake>(rank));
  EXPECT_TRUE(rank.may_begin(0));
  EXPECT_EQ(last_report(rank).reached, 1U);
  EXPECT_FALSE(rank.may_begin(0));
}

TEST(CutRank, GoesOnWhileAnotherRankNeedsAMessage) {
  Rank rank(0, 2);
  rank.open(0);
  const Need need{1, 0, Need::What::message, 0};
  rank.receive(order(Order::What::run_on, 2, {}, {need}));
  EXPECT_EQ(last_report(rank).reached, 0U);
  EXPECT_TRUE(rank.may_begin(0));
  rank.sent(1);
  EXPECT_EQ(last_report(rank).reached, 1U) << "what rank 1 waits for is under way";
  EXPECT_FALSE(rank.may_begin(0));
}

TEST(CutRank, SaysWhatItNeedsOnlyWhileItMustGoOn) {
  Rank rank(0, 3);
  rank.open(0);
  rank.took_in(2);
  rank.waits({{2, Need::What::message}});
  rank.receive(order(Order::What::run_on));
  EXPECT_TRUE(last_report(rank).needs.empty());
  rank.receive(order(Order::What::run_on, 2, {{0, 1}}));
  EXPECT_EQ(last_report(rank).needs, (std::vector<Need>{{0, 2, Need::What::message, 1}}));
  rank.woke();
  EXPECT_TRUE(last_report(rank).needs.empty());
}

TEST(CutRank, GoesOnOnlyWhenAllAreClosed) {
  Rank rank(0, 2);
  rank.open(0);
  rank.receive(order(Order::What::run_on));
  rank.receive(order(Order::What::stop));
  EXPECT_TRUE(puts_out<Stop>(rank));
  rank.stands();
  rank.receive(order(Order::What::save));
  rank.take();
  rank.saved();
  EXPECT_FALSE(puts_out<GoOn>(rank));
  rank.receive(order(Order::What::go_on));
  EXPECT_TRUE(puts_out<GoOn>(rank));
  EXPECT_TRUE(rank.may_begin(0));
}

TEST(CutRank, OrdersThatDoNotFitChangeNothing) {
  Rank rank(0, 2);
  rank.open(0);
  for (const auto what :
       {Order::What::stop, Order::What::save, Order::What::go_on, Order::What::give_up}) {
    rank.receive(order(what));
  }
  rank.stands();
  rank.saved();
  rank.sent(77);
  rank.took_in(77);
  rank.receive(order(Order::What::run_on, 1, {}, {{77, 0, Need::What::message, 0}}));
  EXPECT_EQ(last_report(rank).reached, 1U);
  rank.receive(order(Order::What::save));
  EXPECT_TRUE(rank.take().empty()) << "it does not stand";
}

Rank::Observed observed(std::uint64_t begun, bool in_collective = false) {
  Rank::Observed now;
  now.begun[0] = begun;
  now.peers = {{}, {5, 2, 1}};
  now.in_collective = in_collective;
  return now;
}

TEST(CutRank, TakesCountersAsAWhole) {
  Rank rank(0, 2);
  rank.observe(observed(3));
  EXPECT_TRUE(rank.take().empty());
  rank.receive(order(Order::What::run_on, 1, {{0, 4}}));
  Rank::Observed waiting = observed(3);
  waiting.awaited = {{1, Need::What::message}};
  rank.observe(waiting);
  const Report report = last_report(rank);
  EXPECT_EQ(report.clocks, (std::vector<Clock>{{0, 3, 3}}));
  EXPECT_EQ(report.needs, (std::vector<Need>{{0, 1, Need::What::message, 2}}));
}

TEST(CutRank, WhatItHasAllowedCountsAlsoWhereTheReaderDoesNotSeeItYet) {
  Rank rank(0, 2);
  rank.observe(observed(3));
  rank.receive(order(Order::What::run_on, 1, {{0, 4}}));
  EXPECT_TRUE(rank.may_begin(0));
  rank.observe(observed(3));
  EXPECT_EQ(rank.begun(0), 4U);
  EXPECT_FALSE(rank.may_begin(0));
}

TEST(CutRank, InACollectiveCallThatBlocksItHasNotReachedTheRound) {
  Rank rank(0, 2);
  rank.receive(order(Order::What::run_on));
  rank.observe(observed(3, true));
  EXPECT_EQ(last_report(rank).reached, 0U);
  rank.observe(observed(3));
  EXPECT_EQ(last_report(rank).reached, 1U);
}

TEST(CutRank, IgnoresWhatStillComesFromALostCoordinator) {
  Rank rank(0, 2);
  rank.open(0);
  rank.lose_coordinator();
  rank.receive(order(Order::What::run_on));
  EXPECT_TRUE(rank.may_begin(0)) << "it would be held for ever";
  rank.find_coordinator();
  rank.receive(order(Order::What::run_on));
  EXPECT_FALSE(rank.may_begin(0));
  rank.take();
  rank.lose_coordinator();
  EXPECT_TRUE(puts_out<GoOn>(rank));
  rank.find_coordinator();
  rank.receive(order(Order::What::run_on, 3));
  EXPECT_TRUE(rank.take().empty()) << "it has given this cut up";
}

}  // namespace
}  // namespace backstay::cut
