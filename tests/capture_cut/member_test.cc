// The companion's side of a cut, with a channel in which this test plays the MPI library.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "capture/companion/cut_channel.h"
#include "capture/companion/cut_member.h"

namespace backstay::image {
namespace {

using lower::CutOrder;
using lower::Situation;

class Member : public ::testing::Test {
 protected:
  void SetUp() override {
    channel().rank = 1;
    channel().ranks = 3;
    channel().communicators = 1;
    channel().clock[0] = {1, 7};
  }

  lower::Channel& channel() { return channel_->memory(); }
  lower::Caller& caller(int at = 0) { return channel().caller[at]; }
  lower::PeerCounts& peer(int rank) { return lower::peers_in(channel())[rank]; }
  CutOrder ordered() { return static_cast<CutOrder>(channel().order); }
  // The library counts the collective call that it was permitted.
  void expect_reached_once_begun() {
    channel().clock[0].begun = 8;
    be(Situation::runs);
    member_.look();
    const auto report = last<cut::Report>();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->reached, 1U);
  }
  void be(Situation situation) { caller().situation = static_cast<std::uint32_t>(situation); }
  void order(cut::Order::What what, std::uint32_t round = 0, std::uint64_t target = 0) {
    cut::Order one{4, what, round, {}, {}};
    if (target != 0) one.targets.push_back({1, target});
    member_.receive(one);
  }
  // What came out last of this kind.
  template <typename T>
  std::optional<T> last() {
    std::optional<T> found;
    for (auto& one : member_.take()) {
      if (auto* of = std::get_if<T>(&one)) found = *of;
    }
    return found;
  }

  std::unique_ptr<CutChannel> channel_ = std::move(CutChannel::make()).value();
  ManualClock clock_;
  CutMember member_{channel_->memory(), clock_};
};

TEST_F(Member, ARankThatComputesStandsAsItIs) {
  peer(0).sent = 3;
  peer(2).taken_in = 2;
  order(cut::Order::What::run_on, 1);
  EXPECT_EQ(channel().attention, lower::attend_cut);
  auto report = last<cut::Report>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->reached, 1U);
  EXPECT_EQ(report->clocks, (std::vector<cut::Clock>{{1, 7, 7}}));
  order(cut::Order::What::stop);
  EXPECT_EQ(ordered(), CutOrder::stop);
  report = last<cut::Report>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->standing, 1U);
  EXPECT_EQ(report->sent, 3U);
  EXPECT_EQ(report->taken_in, 2U);
  order(cut::Order::What::save);
  EXPECT_EQ(ordered(), CutOrder::close);
  EXPECT_TRUE(last<CutMember::TakeImage>());
  order(cut::Order::What::go_on);
  EXPECT_TRUE(member_.is_busy());
  member_.saved();
  EXPECT_TRUE(last<CutMember::GoOn>());
  EXPECT_EQ(channel().attention, 0U);
  EXPECT_EQ(ordered(), CutOrder::none);
}

TEST_F(Member, ACollectiveCallIsBegunWhenATargetAllowsIt) {
  order(cut::Order::What::run_on, 1);
  be(Situation::wants);
  caller().wish = 1;
  caller().wish_number = 1;
  member_.look();
  EXPECT_EQ(caller().granted, 0U);
  member_.take();
  order(cut::Order::What::run_on, 2, 8);
  EXPECT_EQ(caller().granted, 1U);
  // It is in the call from the permission on, also where it has not raised its clock yet: no report
  // says otherwise in between, as the order to stop would come.
  member_.look();
  std::optional<cut::Report> report;
  for (const auto& one : member_.take()) {
    if (const auto* said = std::get_if<cut::Report>(&one)) report = *said;
    EXPECT_TRUE(!report || report->reached == 0);
  }
  ASSERT_TRUE(report);
  EXPECT_EQ(report->clocks.front().most, 8U);
  expect_reached_once_begun();
}

TEST_F(Member, AClockThatWasSeenRaisedCountsAsBegun) {
  channel().clock[0].begun = 8;
  caller().calls = 1;
  caller().in_collective = 1;
  order(cut::Order::What::run_on, 1);
  // The library saw the cut just then, and lowers its clock.
  channel().clock[0].begun = 7;
  caller().calls = caller().in_collective = 0;
  member_.look();
  auto report = last<cut::Report>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->clocks.front().most, 8U);
  EXPECT_EQ(report->reached, 0U) << "a cut would come in front of the call, and count it";
  be(Situation::wants);
  caller().wish = 1;
  caller().wish_number = 5;
  member_.look();
  EXPECT_EQ(caller().granted, 5U);
  expect_reached_once_begun();
}

// It had not counted the call when the cut began, so it will see the cut and ask.
TEST_F(Member, AClockThatIsRaisedInACutIsNotCountedWithoutPermission) {
  order(cut::Order::What::run_on, 1);
  EXPECT_EQ(last<cut::Report>()->reached, 1U);
  channel().clock[0].begun = 8;
  caller().calls = caller().in_collective = 1;
  member_.look();
  EXPECT_EQ(last<cut::Report>()->clocks.front().most, 7U);
  channel().clock[0].begun = 7;
  caller().calls = caller().in_collective = 0;
  be(Situation::wants);
  caller().wish = 1;
  caller().wish_number = 5;
  member_.look();
  EXPECT_EQ(caller().granted, 0U) << "the coordinator may have ordered to stop";
}

TEST_F(Member, InACallOfMpiItDoesNotStand) {
  caller().calls = 1;
  order(cut::Order::What::run_on, 1);
  order(cut::Order::What::stop);
  auto report = last<cut::Report>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->standing, 0U);
  caller().calls = 0;
  channel().open_collectives = 1;
  member_.look();
  EXPECT_FALSE(last<cut::Report>());
  channel().open_collectives = 0;
  member_.look();
  report = last<cut::Report>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->standing, 1U);
  // It is just taking in a message when the cut closes.
  caller().calls = 1;
  order(cut::Order::What::save);
  EXPECT_EQ(ordered(), CutOrder::close);
  EXPECT_TRUE(member_.take().empty()) << "others would go on, and it could take their messages in";
  caller().calls = 0;
  member_.look();
  EXPECT_TRUE(last<CutMember::TakeImage>());
}

TEST_F(Member, ARankThatIsBehindAndWaitsHasANeed) {
  peer(2).taken_in = 9;
  order(cut::Order::What::run_on, 1, 8);
  be(Situation::waits);
  caller().awaited[0] = 2;
  caller().awaited_count = 1;
  member_.look();
  const auto report = last<cut::Report>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->needs, (std::vector<cut::Need>{{1, 2, cut::Need::What::message, 9}}));
}

// The second thread is on its way to the call, and the first one's message will come.
TEST_F(Member, OfSeveralThreadsOneThatWaitsHasANeedWhereNothingElseGoesOn) {
  channel().more_callers = 1;
  peer(2).taken_in = 9;
  order(cut::Order::What::run_on, 1, 8);
  be(Situation::waits);
  caller().awaited[0] = 2;
  caller().awaited_count = 1;
  member_.look();
  clock_.advance(19'000'000);
  peer(0).sent = 1;
  member_.look();
  clock_.advance(19'000'000);
  member_.look();
  EXPECT_TRUE(last<cut::Report>()->needs.empty());
  clock_.advance(1'000'000);
  member_.look();
  EXPECT_EQ(last<cut::Report>()->needs,
            (std::vector<cut::Need>{{1, 2, cut::Need::What::message, 9}}));
}

TEST_F(Member, OfSeveralThreadsEachHasItsOwnWish) {
  channel().more_callers = 1;
  channel().communicators = 2;
  channel().clock[1] = {2, 3};
  order(cut::Order::What::run_on, 1, 7);
  for (int i = 0; i < 2; ++i) {
    caller(i).wish = 1 + static_cast<std::uint64_t>(i);
    caller(i).wish_number = 5 + static_cast<std::uint32_t>(i);
    caller(i).situation = static_cast<std::uint32_t>(Situation::wants);
  }
  member_.look();
  EXPECT_EQ(caller(0).granted + caller(1).granted, 0U);
  // The call on the second communicator is behind.
  cut::Order one{4, cut::Order::What::run_on, 2, {{2, 4}}, {}};
  member_.receive(one);
  EXPECT_EQ(caller(1).granted, 6U);
  EXPECT_EQ(caller(0).granted, 0U) << "it has reached the round: that call is the last one";
}

TEST_F(Member, OfSeveralThreadsAllHaveToStand) {
  channel().more_callers = 2;
  caller(1).calls = 1;
  order(cut::Order::What::run_on, 1);
  order(cut::Order::What::stop);
  be(Situation::stands);
  member_.look();
  EXPECT_EQ(last<cut::Report>()->standing, 0U);
  caller(1).calls = 0;
  caller(2).calls = 1;  // it takes in what arrives
  caller(2).situation = static_cast<std::uint32_t>(Situation::stands);
  member_.look();
  EXPECT_EQ(last<cut::Report>()->standing, 1U);
  order(cut::Order::What::save);
  EXPECT_FALSE(last<CutMember::TakeImage>()) << "it is still taking something in";
  caller(2).calls = 0;
  member_.look();
  EXPECT_TRUE(last<CutMember::TakeImage>());
}

TEST_F(Member, WhatCannotBeSavedSaysWhy) {
  channel().ranks = 0;
  order(cut::Order::What::run_on, 1);
  auto refused = last<CutMember::Refused>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why, "it has not called MPI_Init, or not MPI since it was brought back");
  EXPECT_EQ(channel().attention, 0U);
  channel().ranks = 3;
  order(cut::Order::What::run_on, 1);
  EXPECT_FALSE(last<CutMember::Refused>());
  // It calls such a function in a cut.
  std::strcpy(channel().why, "it has used files of MPI");
  channel().refuses = 1;
  member_.look();
  refused = last<CutMember::Refused>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why, "it has used files of MPI");
  EXPECT_EQ(channel().attention, 0U);
  EXPECT_FALSE(member_.is_busy());
}

TEST_F(Member, WithoutACoordinatorTheProgramGoesOn) {
  order(cut::Order::What::run_on, 1);
  order(cut::Order::What::stop);
  member_.lose_coordinator();
  EXPECT_EQ(channel().attention, 0U);
  EXPECT_EQ(ordered(), CutOrder::none);
  EXPECT_FALSE(member_.is_busy());
}

}  // namespace
}  // namespace backstay::image
