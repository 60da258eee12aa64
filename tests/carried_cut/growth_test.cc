#include "carried_cut/growth.h"

#include <gtest/gtest.h>

namespace backstay::agent::test {
namespace {

// A parent and 16 children, with six orders and six reports each, whatever the number of agents.
TEST(CutGrowth, NoAgentHasMoreMessagesForMoreAgents) {
  for (const std::uint32_t nodes : {16U, 256U, 2047U}) {
    const Cost cost = cost_of_a_cut(nodes);
    EXPECT_TRUE(cost.saved);
    EXPECT_LE(cost.most.messages, 12U * 17);
    EXPECT_LE(cost.mean_messages, 24);
  }
}

}  // namespace
}  // namespace backstay::agent::test
