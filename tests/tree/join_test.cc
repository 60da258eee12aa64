// Becoming one tree: joins, refusals, doubled and late messages; barriers over it.
#include <gtest/gtest.h>

#include "tree/few_agents.h"

namespace backstay::tree {
namespace {

using wire::tree::Accept;
using wire::tree::Join;
using wire::tree::Leave;
using wire::tree::Refuse;
using wire::tree::Why;

template <typename T>
const T* sent_to(const FewAgents& few, NodeId to) {
  for (const auto& [from, sent] : few.flying) {
    if (sent.to.node == to && std::holds_alternative<T>(sent.message)) {
      return &std::get<T>(sent.message);
    }
  }
  return nullptr;
}

void give(FewAgents& few, NodeId to, NodeId from, const Message& message) {
  few.at(to).receive(from, message);
  few.flying.clear();
  for (Output& output : few.at(to).take()) {
    if (auto* sent = std::get_if<Send>(&output)) few.flying.emplace_back(to, *sent);
  }
}

Join join(const FewAgents& few, NodeId child, std::uint64_t attempt, NodeId below) {
  return {
      {child, 1, attempt}, few.settings.run, few.settings.nodes, few.settings.arity, below, "host"};
}

TEST(Join, AllBecomeOneTreeInAnyOrder) {
  FewAgents few(40, 3);
  for (NodeId node = 40; node-- > 0;) few.start(node);
  few.settle();
  few.tick(6);
  for (NodeId node = 0; node < 40; ++node) {
    EXPECT_EQ(few.at(node).root(), 0U);
    EXPECT_TRUE(few.at(node).at_home());
    EXPECT_EQ(few.at(node).links().path, place_of(node, 40, 3).ancestors);
  }
  EXPECT_EQ(few.at(0).present(), NodeSet::range(0, 40));
}

TEST(Join, NobodyIsAskedByMoreThanHisChildren) {
  FewAgents few(100, 4);
  std::map<NodeId, int> asked;
  few.lost = [&](NodeId, NodeId to, const Message& message) {
    asked[to] += std::holds_alternative<Join>(message) ? 1 : 0;
    return false;
  };
  few.start_all();
  for (const auto& [node, times] : asked) EXPECT_LE(times, 4) << node;
}

TEST(Join, ADoubledOneIsAcceptedOnceALateOneNot) {
  FewAgents few(7);
  few.start(0);
  give(few, 0, 1, join(few, 1, 5, 1));
  ASSERT_NE(sent_to<Accept>(few, 1), nullptr);
  give(few, 0, 1, join(few, 1, 5, 1));
  ASSERT_NE(sent_to<Accept>(few, 1), nullptr);
  EXPECT_EQ(few.at(0).connections(), 1U);
  give(few, 0, 1, join(few, 1, 4, 1));
  EXPECT_TRUE(few.flying.empty());
}

TEST(Join, IsRefusedForEachReason) {
  FewAgents few(31);
  few.start(3);
  give(few, 3, 0, Accept{{3, 1, 1}, {0, 1, 2}, 0});
  ASSERT_EQ(few.at(3).root(), 0U);
  const auto why = [&](const Join& asked) {
    give(few, 3, asked.link.child, asked);
    const auto* refuse = sent_to<Refuse>(few, asked.link.child);
    return refuse == nullptr ? 0U : refuse->why;
  };
  const auto number = [](Why reason) { return static_cast<std::uint32_t>(reason); };
  EXPECT_EQ(why(join(few, 2, 9, 30)), number(Why::own_subtree));
  EXPECT_EQ(why(join(few, 9, 9, 0)), number(Why::higher_root));
  Join other_run = join(few, 9, 9, 9);
  ++other_run.run;
  EXPECT_EQ(why(other_run), number(Why::other_run));
  Join other_size = join(few, 9, 9, 9);
  ++other_size.nodes;
  EXPECT_EQ(why(other_size), number(Why::other_run));
  // One place for a stranger, and those of its own children stay theirs.
  EXPECT_EQ(why(join(few, 20, 9, 20)), 0U);
  EXPECT_EQ(why(join(few, 21, 9, 21)), number(Why::full));
  EXPECT_EQ(sent_to<Refuse>(few, 21)->instead[0].node, 20U);
  for (const NodeId child : place_of(3, 31, 2).children)
    EXPECT_EQ(why(join(few, child, 9, child)), 0U);
}

TEST(Join, ALostAcceptIsMadeGoodByABeat) {
  FewAgents few(2);
  few.lost = [](NodeId, NodeId, const Message& message) {
    return std::holds_alternative<Accept>(message);
  };
  few.start_all();
  EXPECT_FALSE(few.at(1).links().parent);
  few.tick();
  EXPECT_TRUE(few.at(1).links().parent);
}

TEST(Join, AMessageOfAnUnknownLinkIsAnsweredWithLeave) {
  FewAgents few(7);
  few.start(0);
  give(few, 0, 1, wire::tree::Report{{1, 1, 1}, 1, 0, {{1, 1}}, {}, 0, {}});
  EXPECT_NE(sent_to<Leave>(few, 1), nullptr);
  give(few, 0, 1, wire::tree::Beat{{0, 1, 1}, 1, 0, {1}, 0, {}, false, {}, 0});
  EXPECT_NE(sent_to<Leave>(few, 1), nullptr);
}

// A report that was overtaken by a later one says less, and must not take back what that one said.
TEST(Join, AnOvertakenReportIsIgnored) {
  FewAgents few(3);
  few.start(0);
  give(few, 0, 1, join(few, 1, 1, 1));
  give(few, 0, 1, wire::tree::Report{{1, 1, 1}, 9, 0, {{1, 2}}, {}, 0, {}});
  give(few, 0, 1, wire::tree::Report{{1, 1, 1}, 8, 0, {{1, 1}}, {}, 0, {}});
  EXPECT_EQ(few.at(0).present(), NodeSet::range(0, 3));
}

TEST(Join, ASpareJoinsAndIsNoMember) {
  FewAgents few(3);
  few.start_all();
  few.start(5);
  few.settle();
  few.tick(2);
  EXPECT_EQ(few.at(5).root(), 0U);
  EXPECT_TRUE(few.at(0).present().contains(5));
  for (NodeId node = 0; node < 3; ++node) {
    few.with(node, [](Tree& tree) { tree.enter(1, 1); });
  }
  ASSERT_EQ(few.take<Released>(5).size(), 1U);
}

TEST(Barrier, OpensWhenTheLastHasEntered) {
  FewAgents few(20, 3);
  few.start_all();
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (NodeId node = 0; node < 19; ++node) {
      few.with(node, [round](Tree& tree) { tree.enter(4, round); });
    }
    few.tick(3);
    for (NodeId node = 0; node < 20; ++node) EXPECT_TRUE(few.take<Released>(node).empty());
    few.with(19, [round](Tree& tree) { tree.enter(4, round); });
    for (NodeId node = 0; node < 20; ++node) {
      const auto released = few.take<Released>(node);
      ASSERT_EQ(released.size(), 1U);
      EXPECT_EQ(released[0].barrier, 4U);
      EXPECT_EQ(released[0].round, round);
    }
  }
}

}  // namespace
}  // namespace backstay::tree
