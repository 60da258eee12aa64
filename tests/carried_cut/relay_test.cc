#include <gtest/gtest.h>

#include "agent/cut/cut_relay.h"

namespace backstay::agent {
namespace {

// Agent 1 of three, with ranks 2 and 3; 0 is its parent and 2 its child, of ranks 4 and 5.
class Relay : public ::testing::Test {
 protected:
  Relay() {
    look();
    relay.joined(2);
    relay.joined(3);
  }
  void look() { relay.see(links, 2, newest, now); }
  template <typename Message>
  void hear(NodeId from, const Message& message) {
    look();
    relay.on(from, message);
    relay.pump();
  }
  void report(Rank rank, const cut::Report& report) {
    look();
    const auto parts = cut::as_messages(report);
    for (const auto& part : *parts) EXPECT_TRUE(relay.receive(rank, part)->ok());
    relay.pump();
  }
  void order(cut::Order::What what, cut::CutNumber cut = 9, std::uint32_t round = 1) {
    hear(0, cut::as_messages(cut::Order{cut, what, round, {}, {}, 5})->front());
  }
  static cut::Report answer(std::uint32_t ranks, cut::CutNumber cut = 9) {
    cut::Report report;
    report.cut = cut;
    report.round = 1;
    report.ranks = report.reached = ranks;
    return report;
  }
  void child_reports(const cut::Report& report) { hear(2, cut::as_messages(report)->front()); }

  template <typename T>
  std::vector<T> to_agent(NodeId node) {
    std::vector<T> some;
    for (const auto& output : out) {
      const auto* told = std::get_if<TellAgent>(&output);
      if (told == nullptr || told->node != node) continue;
      if (const auto* one = std::get_if<T>(&told->message)) some.push_back(*one);
    }
    return some;
  }
  template <typename T>
  std::vector<T> to_rank(Rank rank) {
    std::vector<T> some;
    for (const auto& output : out) {
      const auto* told = std::get_if<TellRank>(&output);
      if (told == nullptr || told->rank != rank) continue;
      if (const auto* one = std::get_if<T>(&told->message)) some.push_back(*one);
    }
    return some;
  }
  template <typename T>
  std::size_t count() {
    return static_cast<std::size_t>(
        std::ranges::count_if(out, [](const auto& it) { return std::holds_alternative<T>(it); }));
  }
  void take() { out = relay.take(); }

  tree::Links links{0, {2}, {0}, 1};
  VersionNumber newest = 4;
  std::uint64_t now = 0;
  CutRelay relay{{1, "n1", 3, 6, 2, 77}};
  std::vector<CutOutput> out;
};

constexpr auto run_on = cut::Order::What::run_on;
constexpr auto stop = cut::Order::What::stop;
constexpr auto save = cut::Order::What::save;
constexpr auto go_on = cut::Order::What::go_on;

TEST_F(Relay, SaysWhatACutWaitsFor) {
  EXPECT_FALSE(relay.under_way(now));
  order(run_on);
  EXPECT_EQ(relay.under_way(now)->rank, 2U);  // has not answered
  cut::Report waits = answer(1);
  waits.reached = 0;
  waits.clocks = {{5, 8, 8}};
  report(2, waits);  // in a call that rank 3 has not begun
  waits.clocks = {{5, 7, 7}};
  report(3, waits);
  hear(0, cut::as_messages(cut::Order{9, run_on, 2, {{5, 8}}, {}, 0})->front());
  waits.round = 2;
  report(3, waits);
  waits.clocks = {{5, 8, 8}};
  report(2, waits);
  const auto it = relay.under_way(7'200'000'000);
  EXPECT_EQ(it->rank, 3U);
  EXPECT_EQ(it->seconds, 7.2);
  EXPECT_EQ(it->awaits, "rank 3 (n1) has not come to a call that other ranks are in for 7 s");
  order(cut::Order::What::give_up);
}

TEST_F(Relay, OrdersGoDownAndOneReportOfAllGoesUp) {
  order(run_on);
  report(2, answer(1));
  report(3, answer(1));
  take();
  EXPECT_EQ(to_rank<wire::CutOrder>(3).size(), 1U);
  EXPECT_EQ(to_agent<wire::CutOrder>(2).size(), 1U);
  EXPECT_TRUE(to_agent<wire::CutReport>(0).empty()) << "its child has not answered";
  child_reports(answer(2));
  take();
  const auto told = to_agent<wire::CutReport>(0);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].ranks, 4U);
  EXPECT_EQ(told[0].newest, 4U);
}

TEST_F(Relay, WhatTheCoordinatorCannotActOnStaysHere) {
  order(run_on);
  cut::Report behind = answer(1);
  behind.reached = 0;
  behind.clocks = {{1, 3, 3}};
  report(2, behind);
  report(3, answer(1));
  child_reports(answer(2));
  take();
  EXPECT_EQ(to_agent<wire::CutReport>(0).size(), 1U);
  // The target of the next round: on the way to it nothing is said.
  wire::CutOrder next{9, 0, 2, 0, {{1, 9}}, {}};
  hear(0, next);
  for (std::uint64_t clock = 3; clock <= 9; ++clock) {
    behind.round = 2;
    behind.clocks = {{1, clock, clock}};
    behind.reached = clock == 9 ? 1 : 0;
    report(2, behind);
    cut::Report there = answer(1);
    there.round = 2;
    report(3, there);
    there.ranks = there.reached = 2;
    child_reports(there);
  }
  take();
  const auto told = to_agent<wire::CutReport>(0);
  ASSERT_EQ(told.size(), 2U) << "the first answer, and that all are there";
  EXPECT_EQ(told[1].reached, 4U);
}

TEST_F(Relay, ANeedAndAClockBeyondTheTargetsAreToldAtOnce) {
  order(run_on);
  cut::Report behind = answer(1);
  behind.reached = 0;
  report(2, behind);
  report(3, answer(1));
  child_reports(answer(2));
  take();
  ASSERT_EQ(to_agent<wire::CutReport>(0).size(), 1U);
  behind.needs = {{2, 5, cut::Need::What::message, 7}};
  report(2, behind);
  take();
  ASSERT_EQ(to_agent<wire::CutReport>(0).size(), 1U);
  EXPECT_EQ(to_agent<wire::CutReport>(0)[0].needs.size(), 1U);
  behind.clocks = {{1, 4, 4}};
  report(2, behind);
  take();
  EXPECT_EQ(to_agent<wire::CutReport>(0).size(), 1U);
}

TEST_F(Relay, ANewParentEndsTheCutForAllBelow) {
  order(run_on);
  take();
  links = {5, {2}, {0, 5}, 2};
  look();
  take();
  EXPECT_EQ(to_agent<wire::CutOver>(2).size(), 1U);
  ASSERT_EQ(to_rank<wire::CutOrder>(2).size(), 1U);
  EXPECT_EQ(to_rank<wire::CutOrder>(2)[0].what, 4U);
  EXPECT_EQ(count<CutGivenUp>(), 1U);
  hear(5, cut::as_messages(cut::Order{9, stop, 1, {}, {}})->front());
  hear(5, cut::as_messages(cut::Order{9, run_on, 2, {}, {}})->front());
  take();
  EXPECT_TRUE(out.empty()) << "this cut is over here";
  hear(5, cut::as_messages(cut::Order{10, run_on, 1, {}, {}})->front());
  take();
  EXPECT_EQ(to_rank<wire::CutOrder>(2).size(), 1U);
}

TEST_F(Relay, ALostChildIsToldToTheParent) {
  order(run_on);
  links = {0, {}, {0}, 2};
  look();
  take();
  ASSERT_EQ(to_agent<wire::RefuseCut>(0).size(), 1U);
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].code, Code::again);
}

TEST_F(Relay, StrangersAreNotHeard) {
  hear(7, cut::as_messages(cut::Order{9, run_on, 1, {}, {}})->front());
  hear(2, cut::as_messages(cut::Order{9, run_on, 1, {}, {}})->front());
  hear(7, wire::AskCut{0, 1});
  take();
  EXPECT_TRUE(out.empty());
  order(run_on);
  take();
  hear(7, wire::RefuseCut{9, Code::again, "no"});
  hear(2, wire::CutOver{9, Code::ok, ""});
  take();
  EXPECT_TRUE(out.empty());
}

TEST_F(Relay, TheVersionIsHeldUntilAllAreClosed) {
  order(run_on);
  order(stop);
  order(save);
  take();
  EXPECT_EQ(count<HoldVersion>(), 1U);
  EXPECT_EQ(count<LetVersionGo>(), 0U);
  order(go_on);
  take();
  EXPECT_EQ(count<LetVersionGo>(), 1U);
  hear(0, wire::CutOver{9, Code::again, "too late"});
  take();
  ASSERT_EQ(count<CutGivenUp>(), 1U);
  for (const auto& output : out) {
    const auto* it = std::get_if<CutGivenUp>(&output);
    EXPECT_TRUE(it == nullptr || it->version == 0U);
  }
}

TEST_F(Relay, AVersionThatIsHeldIsGivenUpWithItsCut) {
  order(run_on);
  order(stop);
  order(save);
  relay.left(3, /*goodbye=*/false);
  take();
  ASSERT_EQ(count<CutGivenUp>(), 1U);
  for (const auto& output : out) {
    if (const auto* it = std::get_if<CutGivenUp>(&output)) {
      EXPECT_EQ(it->version, 5U);
      EXPECT_EQ(it->code, Code::rank_lost);
      EXPECT_EQ(it->why, "rank 3 (n1) has died");
    }
  }
}

TEST_F(Relay, WithoutARankThereIsNoCut) {
  relay.left(3, /*goodbye=*/true);
  order(run_on);
  take();
  EXPECT_TRUE(to_rank<wire::CutOrder>(2).empty());
  ASSERT_EQ(to_agent<wire::RefuseCut>(0).size(), 1U);
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].message, "rank 3 (n1) has left its agent");
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].code, Code::again) << "it may come back";
  look();
  relay.joined(3);
  order(run_on, 10);
  take();
  EXPECT_EQ(to_rank<wire::CutOrder>(3).size(), 1U);
}

TEST_F(Relay, AProcessThatHasEndedIsInNoCutAnyMore) {
  order(run_on);
  cut::Report ended = answer(1);
  ended.ended = 1;
  report(3, ended);
  take();
  ASSERT_EQ(to_agent<wire::RefuseCut>(0).size(), 1U);
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].message, "rank 3 (n1) has ended");
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].code, Code::rank_lost);
}

TEST_F(Relay, WhoAskedHearsOfTheEnd) {
  look();
  ASSERT_TRUE(relay.receive(2, wire::AskCut{0, 60'000})->ok());
  relay.pump();
  relay.pump();
  take();
  EXPECT_EQ(to_agent<wire::AskCut>(0).size(), 1U) << "once over one link";
  links = {5, {2}, {0, 5}, 2};
  look();
  relay.pump();
  take();
  EXPECT_EQ(to_agent<wire::AskCut>(5).size(), 1U) << "and again over another";
  hear(5, wire::CutOver{9, Code::again, "rank 5 (n2) has not called MPI for 60 s"});
  take();
  ASSERT_EQ(to_rank<wire::CutOver>(2).size(), 1U);
  EXPECT_TRUE(to_rank<wire::CutOver>(3).empty());
  hear(5, cut::as_messages(cut::Order{10, run_on, 1, {}, {}})->front());
  hear(5, cut::as_messages(cut::Order{10, save, 1, {}, {}, 5})->front());
  ASSERT_TRUE(relay.receive(3, wire::AskCut{0, 60'000})->ok());
  take();
  hear(5, wire::CutOver{10, Code::ok, ""});
  take();
  EXPECT_EQ(to_rank<wire::CutOver>(2).size(), 1U);
  EXPECT_TRUE(to_rank<wire::CutOver>(3).empty()) << "it asked behind the order to save";
  EXPECT_EQ(to_agent<wire::AskCut>(5).size(), 1U);
}

TEST_F(Relay, WhoIsLateIsNamed) {
  order(run_on);
  report(2, answer(1));
  hear(0, wire::peer::WhoIsLate{9, 60});
  take();
  ASSERT_EQ(to_agent<wire::RefuseCut>(0).size(), 1U);
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].message, "rank 3 (n1) has not answered for 60 s");
  report(3, answer(1));
  hear(0, wire::peer::WhoIsLate{9, 60});
  take();
  EXPECT_EQ(to_agent<wire::peer::WhoIsLate>(2).size(), 1U);
  child_reports(answer(2));
  order(stop);
  hear(0, wire::peer::WhoIsLate{9, 60});
  take();
  ASSERT_EQ(to_agent<wire::RefuseCut>(0).size(), 1U);
  EXPECT_EQ(to_agent<wire::RefuseCut>(0)[0].message, "rank 2 (n1) has not called MPI for 60 s");
}

TEST_F(Relay, ARankSpeaksForItselfOnly) {
  look();
  cut::Report report = answer(2);
  const auto taken = relay.receive(2, cut::as_messages(report)->front());
  ASSERT_TRUE(taken.has_value());
  EXPECT_FALSE(taken->ok());
}

TEST(RelayOfNode0, AfterItsRestartTheNumbersAreLarger) {
  for (const std::uint64_t incarnation : {1000U, 2000U}) {
    CutRelay relay({0, "n0", 1, 1, 1, incarnation});
    relay.see({}, 1, 0, CutLead::second_ns);
    relay.joined(0);
    ASSERT_TRUE(relay.receive(0, wire::AskCut{0, 60'000})->ok());
    relay.pump();
    for (const CutOutput& output : relay.take()) {
      const auto* began = std::get_if<CutBegan>(&output);
      EXPECT_TRUE(began == nullptr || began->cut == incarnation + 1);
    }
  }
}

}  // namespace
}  // namespace backstay::agent
