#include <gtest/gtest.h>

#include "agent/cut/cut_lead.h"

namespace backstay::agent {
namespace {

constexpr std::uint64_t s = CutLead::second_ns;

template <typename T>
std::vector<T> of(const std::vector<CutLead::Output>& outputs) {
  std::vector<T> some;
  for (const auto& output : outputs) {
    if (const auto* one = std::get_if<T>(&output)) some.push_back(*one);
  }
  return some;
}

class Lead : public ::testing::Test {
 protected:
  // Of one rank that does what it is told.
  cut::Report answer(cut::CutNumber cut, std::uint32_t stage) const {
    cut::Report report;
    report.cut = cut;
    report.round = report.ranks = report.reached = 1;
    report.standing = stage >= 1 ? 1 : 0;
    report.closed = stage >= 2 ? 1 : 0;
    report.saved = stage >= 3 ? 1 : 0;
    report.newest = 6;
    return report;
  }
  cut::Order order() {
    const auto orders = of<cut::Order>(lead.take());
    EXPECT_EQ(orders.size(), 1U);
    return orders.empty() ? cut::Order{} : orders.front();
  }
  CutLead::Over over() {
    const auto overs = of<CutLead::Over>(lead.take());
    EXPECT_EQ(overs.size(), 1U);
    return overs.empty() ? CutLead::Over{} : overs.front();
  }

  CutLead lead{1, 100};
};

TEST_F(Lead, NumbersAreLargerThanWhatWasUsedBefore) {
  lead.ask({4000, 60'000}, 0);
  lead.pump("", 0);
  EXPECT_EQ(order().cut, 4001U);
}

TEST_F(Lead, TheVersionIsTheNextOneOfAll) {
  lead.ask({0, 60'000}, 0);
  lead.pump("", 0);
  EXPECT_EQ(order().cut, 101U);
  lead.receive(answer(101, 0), 1);
  EXPECT_EQ(order().what, cut::Order::What::stop);
  lead.receive(answer(101, 1), 2);
  const cut::Order save = order();
  EXPECT_EQ(save.what, cut::Order::What::save);
  EXPECT_EQ(save.version, 7U);
}

TEST_F(Lead, ARequestBehindSaveIsServedByTheNextCut) {
  lead.ask({0, 60'000}, 0);
  lead.pump("", 0);
  lead.receive(answer(101, 0), 1);
  lead.ask({0, 60'000}, 1);  // served by this one
  lead.receive(answer(101, 1), 2);
  lead.receive(answer(101, 2), 3);
  lead.receive(answer(101, 3), 4);
  EXPECT_EQ(over().message.code, Code::ok);
  lead.pump("", 5);
  EXPECT_TRUE(lead.take().empty());

  lead.ask({0, 60'000}, 10);
  lead.pump("", 10);
  lead.receive(answer(102, 0), 11);
  lead.receive(answer(102, 1), 12);
  lead.ask({0, 60'000}, 12);
  lead.receive(answer(102, 2), 13);
  lead.receive(answer(102, 3), 14);
  EXPECT_EQ(over().message.code, Code::ok);
  lead.pump("", 15);
  EXPECT_EQ(order().cut, 103U);
}

TEST_F(Lead, TheDeadlineAsksWhoIsLateAndSaysSo) {
  lead.ask({0, 5'000}, 0);
  lead.pump("", 0);
  lead.take();
  EXPECT_EQ(lead.wakes_at_ns(), 5 * s);
  lead.pump("", 5 * s);
  const auto who = of<CutLead::Who>(lead.take());
  ASSERT_EQ(who.size(), 1U);
  EXPECT_EQ(who[0].seconds, 5U);
  lead.refuse(101, Code::again, "rank 0 (n0) has not called MPI for 5 s", 5 * s + 1);
  const auto ended = over();
  EXPECT_EQ(ended.message.code, Code::again);
  EXPECT_EQ(ended.message.message, "rank 0 (n0) has not called MPI for 5 s");
}

TEST_F(Lead, NobodySaysWhoIsLate) {
  lead.ask({0, 5'000}, 0);
  lead.pump("", 0);
  lead.pump("", 5 * s);
  lead.take();
  lead.pump("", 6 * s);
  EXPECT_TRUE(lead.take().empty());
  lead.pump("", lead.wakes_at_ns());
  EXPECT_EQ(over().message.code, Code::again);
}

TEST_F(Lead, ImagesTakeTheTimeThatTheyTake) {
  lead.ask({0, 5'000}, 0);
  lead.pump("", 0);
  for (std::uint32_t stage = 0; stage < 3; ++stage) lead.receive(answer(101, stage), 1);
  lead.take();
  lead.pump("", 500 * s);
  EXPECT_TRUE(lead.take().empty());
  lead.receive(answer(101, 3), 501 * s);
  EXPECT_EQ(over().message.code, Code::ok);
}

// Each try fails after 2 s.
TEST_F(Lead, PausesGrowAndAreForgottenWithACutThatIsSaved) {
  lead.ask({0, 60'000}, 0);
  std::uint64_t now = 0;
  for (const std::uint64_t pause : {3, 6, 12, 24, 48, 96, 192, 384, 600, 600}) {
    lead.pump("", now);
    const cut::CutNumber cut = order().cut;
    now += 2 * s;
    lead.refuse(cut, Code::again, "for once", now);
    lead.take();
    EXPECT_EQ(lead.wakes_at_ns(), now + pause * s);
    lead.pump("", now + pause * s - 1);
    EXPECT_TRUE(lead.take().empty());
    now += pause * s;
  }
  lead.pump("", now);
  const cut::CutNumber cut = order().cut;
  for (std::uint32_t stage = 0; stage < 4; ++stage) lead.receive(answer(cut, stage), now);
  EXPECT_EQ(over().message.code, Code::ok);
  lead.ask({0, 60'000}, now);
  lead.pump("", now);
  EXPECT_EQ(order().cut, cut + 1);
}

TEST_F(Lead, WhatCannotPassIsNotTriedAgain) {
  lead.ask({0, 60'000}, 0);
  lead.pump("", 0);
  lead.refuse(101, Code::rank_lost, "rank 0 (n0) has ended", s);
  lead.take();
  lead.pump("", 1000 * s);
  EXPECT_TRUE(lead.take().empty());
  EXPECT_EQ(lead.wakes_at_ns(), never_ns);
}

TEST_F(Lead, AgentsThatAreMissingAreWaitedForAndNamed) {
  lead.ask({0, 60'000}, 0);
  lead.pump("2 are missing", 0);
  EXPECT_TRUE(lead.take().empty());
  EXPECT_EQ(lead.wakes_at_ns(), 10 * s);
  lead.pump("2 are missing", 10 * s);
  EXPECT_EQ(over().message.message, "2 are missing");
  lead.pump("", lead.wakes_at_ns());
  EXPECT_EQ(order().what, cut::Order::What::run_on);
}

TEST_F(Lead, WhatIsOfAnotherCutIsIgnored) {
  lead.ask({0, 60'000}, 0);
  lead.pump("", 0);
  lead.take();
  lead.refuse(100, Code::again, "late", 1);
  lead.receive(answer(100, 0), 1);
  EXPECT_TRUE(lead.take().empty());
}

}  // namespace
}  // namespace backstay::agent
