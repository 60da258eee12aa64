#include "tree/facts.h"

#include <gtest/gtest.h>

#include "tree/few_agents.h"

namespace backstay::tree {
namespace {

TEST(Facts, ReachEverybodyOnce) {
  FewAgents few(15);
  few.start_all();
  few.with(14, [](Tree& tree) { EXPECT_TRUE(tree.publish("seed", "42").ok()); });
  few.tick(3);
  for (NodeId node = 0; node < 15; ++node) {
    ASSERT_NE(few.at(node).fact(14, "seed"), nullptr) << node;
    EXPECT_EQ(few.at(node).fact(14, "seed")->value, "42");
    EXPECT_EQ(few.take<Fact>(node).size(), node == 14 ? 0U : 1U) << node;
  }
}

TEST(Facts, ALaterOneReplacesAnEarlierOneInAnyOrder) {
  Facts facts;
  EXPECT_TRUE(facts.learn({3, 1, 2, "name", "later"}, {}));
  EXPECT_FALSE(facts.learn({3, 1, 1, "name", "earlier"}, {}));
  EXPECT_FALSE(facts.learn({3, 1, 2, "name", "later"}, {}));
  EXPECT_TRUE(facts.learn({3, 2, 1, "name", "of the next life"}, {}));
  EXPECT_EQ(facts.find(3, "name")->value, "of the next life");
}

TEST(Facts, ALostOneComesAgain) {
  FewAgents few(3);
  few.start_all();
  few.lost = [](NodeId, NodeId, const Message& message) {
    return std::holds_alternative<wire::tree::Facts>(message);
  };
  few.with(1, [](Tree& tree) { EXPECT_TRUE(tree.publish("name", "value").ok()); });
  EXPECT_EQ(few.at(0).fact(1, "name"), nullptr);
  few.lost = nullptr;
  few.tick(2);
  EXPECT_NE(few.at(2).fact(1, "name"), nullptr);
}

// An agent may not know any more what an earlier incarnation published.
TEST(Facts, AnAgentThatStartsAgainGetsItsOwnBack) {
  FewAgents few(3);
  few.start_all();
  few.with(1, [](Tree& tree) { EXPECT_TRUE(tree.publish("name", "value").ok()); });
  few.kill(1);
  few.start(1);
  few.settle();
  few.tick(3);
  ASSERT_NE(few.at(1).fact(1, "name"), nullptr);
}

TEST(Facts, ManyGoInBatches) {
  constexpr NodeId last = 3 * Facts::batch_facts_max;
  FewAgents few(last + 1);
  for (NodeId node = 0; node < last; ++node) few.start(node);
  few.settle();
  for (NodeId node = 0; node < last; ++node) {
    few.with(node,
             [](Tree& tree) { EXPECT_TRUE(tree.publish("name", std::string(1024, 'x')).ok()); });
  }
  few.start(last);
  few.lost = [](NodeId, NodeId, const Message& message) {
    EXPECT_TRUE(wire::tree::encode(message).ok());
    return false;
  };
  few.settle();
  few.tick(3);
  EXPECT_EQ(few.take<Fact>(last).size(), last);
}

// A fact that node `node` of many publishes under a name.
Fact told(NodeId node, const std::string& name, std::size_t bytes = 10) {
  return {node, 1, 1, name, std::string(bytes, 'x')};
}

// Requests that come on every node at once, as signals do, leave the nodes able to say what they
// lack.
TEST(Facts, WhatThousandsOfNodesTellLeavesRoomForOtherNames) {
  Facts facts;
  NodeId node = 0;
  while (node < 100'000 && facts.learn(told(node, "requests"), {})) ++node;
  EXPECT_GT(node, 16'384U);
  EXPECT_LT(node, 100'000U);
  EXPECT_TRUE(facts.publish(told(16383, "lacks", 1024)).ok());
  EXPECT_TRUE(facts.learn(told(3, "lacks", 1024), {}));
}

TEST(Facts, ANameHasOnlySoMuchRoom) {
  Facts facts;
  const NodeId room = Facts::room_bytes_max / (Facts::fact_bytes + 4 + 1024);
  NodeId node = 0;
  for (const char* name : {"same", "name"}) {
    for (node = 0; node <= room && facts.learn(told(node, name, 1024), {});) ++node;
    EXPECT_EQ(node, room) << "of its own: " << name;
  }
  EXPECT_EQ(facts.publish(told(node, "name", 1024)).error().code(), Code::too_large);
  EXPECT_TRUE(facts.learn({0, 1, 2, "name", std::string(1024, 'y')}, {})) << "takes its own place";
  EXPECT_TRUE(facts.learn({1, 1, 2, "name", ""}, {}));
  EXPECT_FALSE(facts.learn(told(node, "name", 1024), {})) << "there is a little room only";
  EXPECT_TRUE(facts.learn({2, 1, 2, "name", ""}, {}));
  EXPECT_TRUE(facts.learn(told(node, "name", 1024), {})) << "the room of two that are shorter now";
}

TEST(Facts, ThereAreOnlySoManyNames) {
  Facts facts;
  for (std::size_t i = 0; i < Facts::names_max; ++i) {
    EXPECT_TRUE(facts.publish(told(0, "name" + std::to_string(i))).ok());
  }
  EXPECT_EQ(facts.publish(told(0, "one too many")).error().code(), Code::too_large);
  EXPECT_FALSE(facts.learn(told(1, "one too many"), {}));
  EXPECT_TRUE(facts.learn(told(1, "name0"), {}));
}

TEST(Facts, WhatCannotBeSentIsRefused) {
  Facts facts;
  EXPECT_EQ(facts.publish({0, 1, 1, "", "x"}).error().code(), Code::invalid);
  EXPECT_EQ(facts.publish({0, 1, 1, std::string("a\0b", 3), "x"}).error().code(), Code::invalid);
  EXPECT_EQ(facts.publish({0, 1, 1, "name", std::string(1, '\0')}).error().code(), Code::invalid);
  EXPECT_EQ(facts.publish({0, 1, 1, std::string(65, 'x'), ""}).error().code(), Code::too_large);
  EXPECT_EQ(facts.publish({0, 1, 1, "name", std::string(1025, 'x')}).error().code(),
            Code::too_large);
  EXPECT_FALSE(facts.learn({0, 1, 1, "name", std::string(1025, 'x')}, {}));
}

}  // namespace
}  // namespace backstay::tree
