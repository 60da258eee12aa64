// What happens when agents die, links go silent, and roots meet.
#include <gtest/gtest.h>

#include "tree/few_agents.h"

namespace backstay::tree {
namespace {

using wire::tree::Beat;

constexpr std::uint32_t nodes = 31;

class Repair : public testing::Test {
 protected:
  Repair() { few.start_all(), few.tick(5); }
  void expect_one_tree(NodeId root, std::size_t count) {
    EXPECT_EQ(few.at(root).present().count(), count);
    for (const auto& [node, agent] : few.agents) EXPECT_EQ(agent->root(), root) << node;
  }
  FewAgents few{nodes};
};

TEST_F(Repair, ASilentNeighbourGoesAfterLostTicksNotBefore) {
  few.kill(30);
  const NodeId parent = place_of(30, nodes, 2).ancestors.back();
  few.tick(static_cast<int>(few.settings.lost_ticks));
  EXPECT_TRUE(few.at(parent).needs(30));
  few.tick();
  EXPECT_FALSE(few.at(parent).needs(30));
}

// The dead parent is not the first whom they ask.
TEST_F(Repair, TheChildrenOfASilentParentAreTakenByTheNextAncestor) {
  few.kill(1);
  few.tick(static_cast<int>(few.settings.lost_ticks) + 1);
  EXPECT_EQ(few.at(2).root(), 0U);
}

TEST_F(Repair, AnInnerNodesChildrenFindOtherParents) {
  few.kill(1);
  few.tick(15);
  expect_one_tree(0, nodes - 1);
}

TEST_F(Repair, WhenTheRootDiesAnotherNodeIsRoot) {
  few.kill(0);
  few.tick(25);
  expect_one_tree(few.at(1).root(), nodes - 1);
  few.kill(few.at(1).root());
  few.kill(2);
  few.tick(60);
  expect_one_tree(few.at(30).root(), few.agents.size());
}

TEST_F(Repair, WhoComesBackGetsItsChildrenBack) {
  few.kill(0);
  few.kill(1);
  few.tick(30);
  few.start(0);
  few.start(1);
  few.settle();
  few.tick(60);
  expect_one_tree(0, nodes);
  for (NodeId node = 0; node < nodes; ++node) EXPECT_TRUE(few.at(node).at_home()) << node;
}

TEST_F(Repair, TheLostAreToldToAllAndTheReturnedToo) {
  few.kill(5);
  few.tick(static_cast<int>(3 * few.settings.grace_ticks));
  for (const auto& [node, agent] : few.agents) {
    const auto changes = few.take<Membership>(node);
    ASSERT_EQ(changes.size(), 1U) << node;
    EXPECT_EQ(changes[0].lost, NodeSet::range(5, 1));
    EXPECT_EQ(agent->lost(), NodeSet::range(5, 1));
  }
  few.start(5);
  few.settle();
  few.tick(8);
  for (const auto& [node, agent] : few.agents) EXPECT_TRUE(agent->lost().empty()) << node;
  EXPECT_EQ(few.take<Membership>(9).at(0).back, NodeSet::range(5, 1));
}

TEST_F(Repair, HalvesOfACutNetworkMeetAgain) {
  few.lost = [](NodeId from, NodeId to, const Message&) { return (from < 16) != (to < 16); };
  few.tick(60);
  EXPECT_EQ(few.at(0).present(), NodeSet::range(0, 16));
  EXPECT_EQ(few.at(16).present(), NodeSet::range(16, 15));
  EXPECT_EQ(few.at(20).root(), 16U);
  EXPECT_EQ(few.at(0).lost(), NodeSet::range(16, 15));
  EXPECT_EQ(few.at(20).lost(), NodeSet::range(0, 16));
  few.lost = nullptr;
  few.tick(60);
  expect_one_tree(0, nodes);
}

TEST_F(Repair, WhoFindsItselfInItsPathLeaves) {
  ASSERT_TRUE(few.at(3).links().parent);
  few.with(3, [](Tree& tree) {
    const NodeId parent = *tree.links().parent;
    for (std::uint64_t attempt = 1; attempt < 5; ++attempt) {
      tree.receive(parent, Beat{{3, 4, attempt}, 1000, 0, {9, 3, parent}, 0, {}, false, {}, 0});
    }
    EXPECT_FALSE(tree.links().parent);
  });
  few.tick(5);
  expect_one_tree(0, nodes);
}

// A root that was not heard for long may be gone, though the parent still beats.
TEST_F(Repair, WordOfARootGrowsOldAndIsNotFollowed) {
  few.lost = [](NodeId from, NodeId, const Message&) { return from == 0; };
  const NodeId parent = place_of(3, nodes, 2).ancestors.back();
  few.with(3, [&](Tree& tree) {
    tree.receive(
        parent,
        Beat{{3, 4, 1}, 1000, 0, {0, parent}, few.settings.age_ticks_max, {}, false, {}, 0});
    EXPECT_TRUE(tree.links().parent);
    tree.receive(
        parent,
        Beat{{3, 4, 1}, 1001, 0, {0, parent}, few.settings.age_ticks_max + 1, {}, false, {}, 0});
    EXPECT_FALSE(tree.links().parent);
  });
}

TEST_F(Repair, AnUnreachablePeerIsLeftAtOnce) {
  few.with(3, [](Tree& tree) { tree.unreachable(*tree.links().parent); });
  EXPECT_TRUE(few.at(3).links().parent) << "it asked the next one, or the same again";
  few.tick(20);
  expect_one_tree(0, nodes);
}

TEST_F(Repair, ACleanEndIsNoticedAtOnce) {
  few.lost = [](NodeId, NodeId to, const Message&) { return to == 1; };
  few.with(1, [](Tree& tree) { tree.leave(); });
  few.kill(1);
  EXPECT_FALSE(few.at(0).needs(1));
  EXPECT_FALSE(few.at(2).links().parent);
  few.tick(20);
  expect_one_tree(0, nodes - 1);
}

// The root dies after the last report: who follows it hears from the others what it knew.
TEST_F(Repair, ANewRootLearnsWhatTheOldOneAnnounced) {
  const RunVersion version{1, 9};
  for (NodeId node = 0; node < nodes; ++node) {
    few.with(node, [](Tree& tree) { tree.held(9, Level::local); });
  }
  // Only node 30 hears the announcement.
  for (NodeId node = 0; node < nodes; ++node) {
    few.with(node, [&](Tree& tree) {
      if (node + 1 == nodes) {
        few.lost = [](NodeId, NodeId to, const Message& message) {
          const bool path_to_30 = to == 30 || place_of(to, nodes, 2).subtree + to == 31;
          return std::holds_alternative<Beat>(message) && !path_to_30;
        };
      }
      tree.recorded(version, Level::local);
    });
  }
  ASSERT_EQ(few.at(30).announced(version), Level::local);
  ASSERT_EQ(few.at(1).announced(version), Level::none);
  few.lost = nullptr;
  few.kill(0);
  few.tick(30);
  for (const auto& [node, agent] : few.agents) {
    EXPECT_EQ(agent->announced(version), Level::local) << node;
  }
}

}  // namespace
}  // namespace backstay::tree
