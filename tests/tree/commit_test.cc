#include "tree/commit.h"

#include <gtest/gtest.h>

#include "tree/few_agents.h"

namespace backstay::tree {
namespace {

constexpr RunVersion version{1, 5};

// The owner's answer to every Record.
void write_records(FewAgents& few) {
  for (auto& [node, agent] : few.agents) {
    for (const Record& record : few.take<Record>(node)) {
      few.with(node, [&](Tree& tree) { tree.recorded(record.version, record.level); });
    }
  }
}

TEST(Commit, IsAnnouncedWhenAllHoldAndAllHaveTheRecord) {
  FewAgents few(7);
  few.start_all();
  for (NodeId node = 0; node < 6; ++node) {
    few.with(node, [](Tree& tree) { tree.held(5, Level::local); });
  }
  few.tick(3);
  for (NodeId node = 0; node < 7; ++node) EXPECT_TRUE(few.take<Record>(node).empty()) << node;

  few.with(6, [](Tree& tree) { tree.held(5, Level::local); });
  for (NodeId node = 0; node < 7; ++node) {
    const auto record = few.take<Record>(node);
    ASSERT_EQ(record.size(), 1U) << node;
    EXPECT_EQ(record[0].version, version);
    EXPECT_EQ(record[0].level, Level::local);
  }
  for (NodeId node = 1; node < 7; ++node) {
    few.with(node, [](Tree& tree) { tree.recorded(version, Level::local); });
  }
  few.tick(3);
  for (NodeId node = 0; node < 7; ++node) EXPECT_TRUE(few.take<Announce>(node).empty()) << node;

  few.with(0, [](Tree& tree) { tree.recorded(version, Level::local); });
  for (NodeId node = 0; node < 7; ++node) {
    const auto announce = few.take<Announce>(node);
    ASSERT_EQ(announce.size(), 1U) << node;
    EXPECT_EQ(announce[0].level, Level::local);
    EXPECT_EQ(few.at(node).announced(version), Level::local);
  }
}

TEST(Commit, AHigherLevelIncludesLowerOnes) {
  FewAgents few(3);
  few.start_all();
  few.with(0, [](Tree& tree) { tree.held(5, Level::durable); });
  few.with(1, [](Tree& tree) { tree.held(5, Level::protected_); });
  few.with(2, [](Tree& tree) { tree.held(5, Level::durable); });
  write_records(few);
  EXPECT_EQ(few.at(2).announced(version), Level::protected_);
  few.with(1, [](Tree& tree) { tree.held(5, Level::durable); });
  write_records(few);
  EXPECT_EQ(few.at(2).announced(version), Level::durable);
}

TEST(Commit, SurvivesTheAgentsOfAllNodes) {
  FewAgents few(3);
  few.start_all();
  for (NodeId node = 0; node < 3; ++node) {
    few.with(node, [](Tree& tree) { tree.held(5, Level::local); });
  }
  write_records(few);
  for (NodeId node = 0; node < 3; ++node) few.kill(node);
  for (NodeId node = 0; node < 3; ++node) few.start(node, {{version, Level::local, Level::local}});
  few.settle();
  for (NodeId node = 0; node < 3; ++node) {
    EXPECT_EQ(few.at(node).announced(version), Level::local);
    EXPECT_TRUE(few.take<Record>(node).empty()) << "it is on the disk already";
  }
}

TEST(Commit, OneRecordOfAnEarlierRunIsEnough) {
  FewAgents few(3);
  const RunVersion old{77, 5};
  few.start(0);
  few.start(1, {{old, Level::protected_, Level::protected_}});
  few.start(2, {{old, Level::protected_, Level::local}});
  few.settle();
  few.tick(2);
  EXPECT_EQ(few.at(0).announced(old), Level::none) << "not before it is on all disks";
  write_records(few);
  few.tick(2);
  for (NodeId node = 0; node < 3; ++node) EXPECT_EQ(few.at(node).announced(old), Level::protected_);
}

// The other members of the old run may have held nothing.
TEST(Commit, WhatIsHeldOfAnEarlierRunDecidesNothing) {
  FewAgents few(2);
  const RunVersion old{77, 5};
  few.start(0, {{old, Level::durable, Level::none}});
  few.start(1, {{old, Level::durable, Level::none}});
  few.settle();
  few.tick(5);
  EXPECT_TRUE(few.take<Record>(0).empty());
  EXPECT_EQ(few.at(0).announced(old), Level::none);
}

TEST(Commit, VersionsOfSeveralRunsWithOneNumberAreApart) {
  FewAgents few(2);
  few.start(0, {{{77, 5}, Level::local, Level::local}});
  few.start(1);
  few.settle();
  few.tick(2);
  write_records(few);
  few.tick(2);
  EXPECT_EQ(few.at(1).announced({77, 5}), Level::local);
  EXPECT_EQ(few.at(1).announced(version), Level::none);
}

// Node 1 has the children 2 and 3, and tells of itself what they have reached as well.
TEST(Commit, AnInnerNodeHasToldALevelOnceItsRowSaysSo) {
  FewAgents few(7);
  few.start_all();
  few.tick(2);
  ASSERT_EQ(few.at(1).links().children, (std::vector<NodeId>{2, 3}));
  few.with(1, [](Tree& tree) { tree.held(5, Level::protected_); });
  EXPECT_EQ(few.at(1).told(5), Level::none) << "no report has gone out";
  few.tick(2);
  EXPECT_EQ(few.at(1).told(5), Level::protected_) << "a row of node 1 alone";

  few.with(2, [](Tree& tree) { tree.held(6, Level::local); });
  few.with(1, [](Tree& tree) { tree.held(6, Level::protected_); });
  few.tick(2);
  EXPECT_EQ(few.at(1).told(6), Level::local) << "a row of the nodes 1 and 2";
  few.with(2, [](Tree& tree) { tree.held(6, Level::protected_); });
  few.tick(2);
  EXPECT_EQ(few.at(1).told(6), Level::protected_);

  few.with(3, [](Tree& tree) { tree.held(6, Level::local); });
  few.tick(2);
  EXPECT_EQ(few.at(1).told(6), Level::protected_) << "what was told stays true";
  few.with(0, [](Tree& tree) { tree.held(6, Level::protected_); });
  EXPECT_EQ(few.at(0).told(6), Level::protected_) << "there is nobody above it to tell";
}

// A leaf reports at once; its parent answers with the next tick.
TEST(Commit, ALevelIsToldOnceTheParentHasAnswered) {
  FewAgents few(3);
  few.start_all();
  few.lost = [](NodeId from, NodeId, const Message&) { return from == 1; };
  few.with(1, [](Tree& tree) { tree.held(5, Level::protected_); });
  few.tick(2);
  ASSERT_TRUE(few.at(1).links().parent);
  EXPECT_EQ(few.at(1).told(5), Level::none) << "its reports are lost";
  few.lost = [](NodeId, NodeId to, const Message&) { return to == 1; };
  few.tick(2);
  ASSERT_TRUE(few.at(1).links().parent);
  EXPECT_EQ(few.at(1).told(5), Level::none) << "the answers are lost";
  few.lost = nullptr;
  few.with(1, [](Tree& tree) { tree.held(6, Level::protected_); });
  EXPECT_EQ(few.at(1).told(6), Level::none) << "there is no answer yet";
  few.tick(2);
  EXPECT_EQ(few.at(1).told(5), Level::protected_);
  EXPECT_EQ(few.at(1).told(6), Level::protected_);
}

// A child whose part is not protected has joined since: the row that arrives says less.
TEST(Commit, ALostRowThatSaidMoreHasToldNothing) {
  FewAgents few(7);
  few.start_all();
  few.tick(2);
  few.lost = [](NodeId from, NodeId to, const Message&) { return from == 1 && to == 0; };
  few.with(1, [](Tree& tree) { tree.held(5, Level::protected_); });
  few.tick();
  few.with(2, [](Tree& tree) { tree.held(5, Level::local); });
  few.tick();
  few.lost = nullptr;
  few.tick(2);
  ASSERT_EQ(few.at(1).links().parent, NodeId{0});
  EXPECT_EQ(few.at(1).told(5), Level::local);
}

TEST(Commit, ANodeWithoutAParentTellsNothingBeforeItHasOne) {
  FewAgents few(7);
  few.start_all();
  few.lost = [](NodeId from, NodeId to, const Message&) { return from == 4 || to == 4; };
  few.with(4, [](Tree& tree) { tree.unreachable(0); });
  few.with(4, [](Tree& tree) { tree.held(5, Level::protected_); });
  few.tick(3);
  ASSERT_FALSE(few.at(4).links().parent);
  EXPECT_EQ(few.at(4).told(5), Level::none);
  few.lost = nullptr;
  few.tick(60);
  ASSERT_TRUE(few.at(4).links().parent);
  EXPECT_EQ(few.at(4).told(5), Level::protected_);
}

TEST(CommitDeath, ACapturedVersionIsNoMatterOfTheTree) {
  FewAgents few(1);
  few.start_all();
  EXPECT_DEATH(few.at(0).held(5, Level::captured), "level >= Level::local");
}

}  // namespace
}  // namespace backstay::tree
