// Whether the first version after a restart on several nodes may keep chunks of the one that was
// brought back, and where these lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/checkpoint/older.h"
#include "around_harness.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Version 7, saved by 8 ranks on 4 nodes; this agent is node 0.
class RestartBase : public ::testing::Test {
 protected:
  static constexpr std::size_t bytes = 2 * slot_bytes + 1000;  // three chunks an object
  static constexpr RunId run = 11;
  static NodeFile saved(NodeId node, std::uint32_t nodes = 4) {
    return {{7, run, node}, nodes, 8, {2 * node, 2 * node + 1}, bytes};
  }
  static void bring_back(AgentHarness& agent) {
    agent.restart(7, run, bytes);
    agent.expect_restored(run);
    agent.state().brought_back = agent.restore().base();
  }
  static bool all_ranks_hear(AgentHarness& agent) {
    return agent.rank(0).plan.may_be_base && agent.rank(2).plan.may_be_base;
  }
  const NodeFile file0 = saved(0);
  const NodeFile file1 = saved(1);
};

// Rank 2 was on node 1 of the run that saved it.
TEST_F(RestartBase, IsWhatThisNodesDiskHasWhoeverWroteIt) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  agent.put_local(file1);
  bring_back(agent);
  EXPECT_TRUE(all_ranks_hear(agent));
  const auto base = find_base(agent.state(), 7);
  ASSERT_TRUE(base.ok()) << base.error().to_string();
  EXPECT_EQ(base->size(), 2u);
  const auto kept = keep(*base, Rank{2}, {slot_bytes, slot_bytes}, 0);
  ASSERT_TRUE(kept.ok()) << kept.error().to_string();
  EXPECT_EQ(kept->in, (format::Need{7, run}));
  EXPECT_EQ(kept->chunk.node, 1u);
  EXPECT_EQ(kept->chunk.segment_offset, file1.manifest.chunks[1].segment_offset);
  EXPECT_EQ(keep(*base, Rank{0}, {0, slot_bytes}, 0)->chunk.node, 0u);
  EXPECT_FALSE(keep(*base, Rank{5}, {0, slot_bytes}, 0).ok()) << "its object is not here";
}

// Each node leaves what any part of the new version needs.
TEST_F(RestartBase, AllThatItNeedsIsNeededByTheNextOneToo) {
  AgentHarness agent(64, 8, {0});
  agent.put_local(file0);
  agent.state().versions.needs({7, run}, std::vector<format::Need>{{3, 5}});
  bring_back(agent);
  const auto base = find_base(agent.state(), 7);
  ASSERT_TRUE(base.ok()) << base.error().to_string();
  EXPECT_THAT(needs_on(agent.state(), *base).value(),
              ElementsAre(format::Need{3, 5}, format::Need{7, run}));
}

TEST_F(RestartBase, IsInThePoolOnceItIsOnTheDisk) {
  for (const bool on_disk : {false, true}) {
    AgentHarness agent(64, 8, {0, 1});
    agent.put_in_pool(file0);
    agent.put_local(file0);
    if (on_disk) agent.state().newest_part = std::make_shared<format::Manifest>(file0.manifest);
    bring_back(agent);
    EXPECT_TRUE(agent.rank(0).plan.from_pool);
    EXPECT_EQ(agent.rank(1).plan.may_be_base, on_disk);
    EXPECT_EQ(find_base(agent.state(), 7).ok(), on_disk);
  }
}

TEST_F(RestartBase, IsNoneWhereARankReadsFromAnotherNode) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  agent.put_at(1, file1);
  bring_back(agent);
  EXPECT_FALSE(agent.rank(0).plan.may_be_base || agent.rank(2).plan.may_be_base);
  const auto base = find_base(agent.state(), 7);
  ASSERT_FALSE(base.ok());
  EXPECT_THAT(base.error().message(), HasSubstr("brought back last"));
}

TEST_F(RestartBase, IsNoneWhereARankReadsFromSharedStorage) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  agent.put_durable(file0);
  agent.put_durable(file1);
  bring_back(agent);
  EXPECT_FALSE(agent.rank(0).plan.may_be_base || agent.rank(2).plan.may_be_base);
}

// Ranks that ask for its level might hear what other nodes know, and this one could not keep it.
TEST_F(RestartBase, IsNoneWhereTheRecordIsNotHere) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_in_doubt(file0);
  bring_back(agent);
  EXPECT_FALSE(agent.rank(0).plan.may_be_base);
}

TEST_F(RestartBase, IsNoneWhereTheNextOneCouldNotReachItsLevels) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  agent.put_local(file1);
  agent.not_to_be_needed.insert(file1.file);
  bring_back(agent);
  EXPECT_FALSE(agent.rank(0).plan.may_be_base || agent.rank(2).plan.may_be_base);
}

TEST_F(RestartBase, IsNoneOnOneNodeOfSeveralNorOnSeveralOfOne) {
  AgentHarness alone(64, 8, {0, 2}, /*nodes=*/1);
  alone.put_local(file0);
  alone.put_local(file1);
  bring_back(alone);
  EXPECT_FALSE(alone.rank(0).plan.may_be_base || alone.rank(2).plan.may_be_base);
  const NodeFile of_one = saved(0, /*nodes=*/1);
  AgentHarness agent(64, 8, {0, 1});
  agent.put_local(of_one);
  bring_back(agent);
  EXPECT_FALSE(agent.rank(0).plan.may_be_base);
}

}  // namespace
}  // namespace backstay::agent::testing
