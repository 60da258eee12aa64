// Turns at the shared storage: never more than may be, each file once, whoever is lost meanwhile.
#include "agent/drain/drain_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/seed.h"

namespace backstay::agent {
namespace {

TEST(DrainSchedule, OneAfterTheOtherInTheOrderOfTheNodes) {
  DrainSchedule turns(3, 1);
  for (const NodeId node : {0u, 1u, 2u}) turns.has(node, std::vector{node});
  for (const NodeId node : {0u, 1u, 2u}) {
    const auto turn = turns.next();
    EXPECT_EQ(turn, (DrainSchedule::Turn{node, node}));
    EXPECT_FALSE(turns.next().has_value());
    turns.done(*turn);
  }
  EXPECT_TRUE(turns.complete());
}

TEST(DrainSchedule, AFileIsCopiedByItsOwnerAndByAStandInOnceThatIsLost) {
  DrainSchedule turns(2, 0);
  turns.has(0, std::vector<NodeId>{0, 1});
  turns.has(1, std::vector<NodeId>{1});
  const auto first = turns.next(), second = turns.next();
  EXPECT_EQ(first, (DrainSchedule::Turn{0, 0}));
  EXPECT_EQ(second, (DrainSchedule::Turn{1, 1}));
  turns.lost(1);
  EXPECT_FALSE(turns.missing().has_value());
  EXPECT_FALSE(turns.next().has_value()) << "the stand-in is at another file";
  turns.done(*first);
  EXPECT_EQ(turns.next(), (DrainSchedule::Turn{0, 1}));
}

TEST(DrainSchedule, SaysWhichFileNobodyHas) {
  DrainSchedule turns(3, 0);
  turns.has(0, std::vector<NodeId>{0, 2, 9});
  EXPECT_EQ(turns.missing(), 1u);
  turns.has(1, std::vector<NodeId>{1});
  EXPECT_FALSE(turns.missing().has_value());
  for (auto turn = turns.next(); turn; turn = turns.next()) {
    if (turn->file == 1) turns.failed(*turn);
  }
  EXPECT_EQ(turns.missing(), 1u);
}

TEST(DrainSchedule, WhateverHappens) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 500; ++round) {
    const auto files = static_cast<NodeId>(random.between(1, 12));
    const auto agents = static_cast<NodeId>(random.between(1, 12));
    const auto at_once = static_cast<std::uint32_t>(random.between(0, 4));
    DrainSchedule turns(files, at_once);
    for (NodeId agent = 0; agent < agents; ++agent) {
      std::vector<NodeId> has;
      for (NodeId file = 0; file < files; ++file)
        if (file == agent || random.between(0, 3) == 0) has.push_back(file);
      turns.has(agent, has);
    }
    std::vector<DrainSchedule::Turn> out;
    std::vector<NodeId> done;
    while (!turns.complete() && !turns.missing()) {
      while (const auto turn = turns.next()) {
        EXPECT_TRUE(std::ranges::none_of(out, [&](const DrainSchedule::Turn& other) {
          return other.agent == turn->agent || other.file == turn->file;
        }));
        EXPECT_EQ(std::ranges::count(done, turn->file), 0);
        out.push_back(*turn);
      }
      EXPECT_TRUE(at_once == 0 || out.size() <= at_once);
      EXPECT_EQ(out.size(), turns.given());
      ASSERT_FALSE(out.empty()) << "it stands still";
      const std::size_t which = random.between(0, out.size() - 1);
      const DrainSchedule::Turn turn = out[which];
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
      switch (random.between(0, 5)) {
        case 0: turns.failed(turn); break;
        case 1: turns.lost(turn.agent); break;
        default: turns.done(turn); done.push_back(turn.file);
      }
    }
    EXPECT_TRUE(!turns.complete() || done.size() == files);
  }
}

}  // namespace
}  // namespace backstay::agent
