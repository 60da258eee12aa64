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

// What an agent told in an earlier life it may not know any more.
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
  FewAgents few(2);
  few.start(0);
  for (std::size_t i = 0; i < Facts::facts_max; ++i) {
    few.with(0, [i](Tree& tree) {
      EXPECT_TRUE(tree.publish("name" + std::to_string(i), std::string(1024, 'x')).ok());
    });
  }
  few.start(1);
  few.lost = [](NodeId, NodeId, const Message& message) {
    EXPECT_TRUE(wire::tree::encode(message).ok());
    return false;
  };
  few.settle();
  few.tick(3);
  EXPECT_EQ(few.take<Fact>(1).size(), Facts::facts_max);
  few.with(1, [](Tree& tree) {
    EXPECT_EQ(tree.publish("one too many", "").error().code(), Code::too_large);
  });
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
