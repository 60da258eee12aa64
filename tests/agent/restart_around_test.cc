// Restarts on several nodes: where each rank's object comes from, and what happens when it does not
// come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/restart/candidate.h"
#include "around_harness.h"
#include "support/seed.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t bytes = 2 * slot_bytes + 1000;  // three chunks an object
constexpr RunId run = 11;

// Version 7, saved by 8 ranks on 4 nodes; this agent is node 0.
class RestartAround : public ::testing::Test {
 protected:
  static NodeFile saved(NodeId node, RunId of = run, VersionNumber version = 7) {
    return {{version, of, node}, 4, 8, {2 * node, 2 * node + 1}, bytes};
  }
  std::uint64_t chunk_of(const NodeFile& file, Rank rank, std::size_t index) {
    return file.manifest.chunks_of(*file.manifest.find(rank))[index].segment_offset;
  }
  const NodeFile file0 = saved(0);
  const NodeFile file1 = saved(1);
  const NodeFile file2 = saved(2);
};

TEST_F(RestartAround, EachRankFromItsNearestPlace) {
  AgentHarness agent(64, 8, {0, 2, 5});
  agent.put_local(file0);
  agent.put_at(3, file0);  // farther
  agent.put_at(3, file1);
  agent.put_durable(file0);
  agent.put_durable(file1);
  agent.put_durable(file2);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.disk.reads, 3);
  EXPECT_EQ(agent.agents[3].reads, 3);
  EXPECT_EQ(agent.durable.reads, 3);
  EXPECT_EQ(agent.rank(0).plans, 1);
  EXPECT_EQ(agent.restore().brought_back(), (VersionOfRun{7, run}));
}

TEST_F(RestartAround, FromThePoolAndFromAnotherAgentAtOnce) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_in_pool(file0);
  agent.put_local(file0);
  agent.put_at(1, file1);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_TRUE(agent.rank(0).plan.from_pool);
  EXPECT_FALSE(agent.rank(2).plan.from_pool);
  EXPECT_EQ(agent.disk.reads, 0);
  EXPECT_EQ(agent.state().memory.at(7).pins, 0);
}

TEST_F(RestartAround, AKeptCopyOnTheOwnDiskComesBeforeOtherAgents) {
  AgentHarness agent(64, 8, {2, 3});
  agent.put_local(file1);
  agent.put_at(1, file1);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.agents[1].reads, 0);
  // One that the store knows nothing of is read by the peer file thread.
  AgentHarness other(64, 8, {2, 3});
  other.directory().add(file1.held(/*recorded=*/false));
  other.agents[0].files[file1.file] = &file1;
  other.put_at(1, file1);
  other.restart(7, run, bytes);
  other.expect_restored(run);
  EXPECT_EQ(other.agents[0].reads, 6);
  EXPECT_EQ(other.agents[1].reads, 0);
}

TEST_F(RestartAround, AnUndecidedPartCountsWhereAnotherNodeHasTheRecord) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_in_doubt(file0);
  EXPECT_EQ(newest_candidate(agent.state(), {}).code, Code::none)
      << "nothing that it offers itself";
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.disk.reads, 6);
}

TEST_F(RestartAround, AnAgentThatIsLostInTheMiddleIsReplacedByTheNextHolder) {
  AgentHarness agent(64, 8, {2, 3});
  for (const NodeId holder : {1, 2, 3}) {
    agent.put_at(holder, file1);
    agent.agents[holder].reads_until_failure = holder == 3 ? -1 : 1;
  }
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.withdrawals, 0) << "the plan stays";
  EXPECT_EQ(agent.rank(2).plans, 1);
  EXPECT_TRUE(agent.damaged.empty());
}

TEST_F(RestartAround, AnAgentThatHasNoRoomAtTheMomentIsAskedAgain) {
  AgentHarness agent(64, 8, {2, 3});
  agent.put_at(1, file1);
  agent.agents[1].busy = 5;
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.agents[1].reads, 11);
}

TEST_F(RestartAround, DamageAtAnAgentIsWithdrawnAndReadFromTheNextOne) {
  AgentHarness agent(64, 8, {2, 3});
  for (const NodeId holder : {1, 2}) agent.put_at(holder, file1);
  // Which holder the directory names first is its choice: so both ways round.
  agent.agents[1].damage.insert({1, chunk_of(file1, 2, 1)});
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  AgentHarness again(64, 8, {2, 3});
  for (const NodeId holder : {1, 2}) again.put_at(holder, file1);
  again.agents[2].damage.insert({1, chunk_of(file1, 2, 1)});
  again.restart(7, run, bytes);
  again.expect_restored(run);
  EXPECT_EQ(agent.rank(2).plans + again.rank(2).plans, 3) << "one of them was the first";
  auto damaged = agent.damaged;
  damaged.insert(damaged.end(), again.damaged.begin(), again.damaged.end());
  EXPECT_THAT(damaged,
              ElementsAre(std::pair(agent.rank(2).plans == 2 ? NodeId{1} : NodeId{2}, file1.file)));
}

TEST_F(RestartAround, ADamagedManifestAtAnAgentIsReadFromTheNextOne) {
  for (const NodeId bad : {1, 2}) {
    AgentHarness agent(64, 8, {2, 3});
    for (const NodeId holder : {1, 2}) agent.put_at(holder, file1);
    agent.agents[bad].bad_manifests = true;
    agent.restart(7, run, bytes);
    agent.expect_restored(run);
  }
}

TEST_F(RestartAround, NobodyHasIt) {
  AgentHarness agent(64, 8, {0, 5});
  agent.put_local(file0);
  agent.restart(7, run, bytes);
  agent.expect_over(Code::not_found);
  EXPECT_EQ(agent.rank(0).message, "rank 5's object is on no node that is left");
  agent.expect_untouched();
  EXPECT_EQ(agent.restore().brought_back(), std::nullopt);
}

TEST_F(RestartAround, NobodyCanGiveItAnyMore) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  for (const NodeId holder : {1, 3}) {
    agent.put_at(holder, file1);
    agent.agents[holder].reads_until_failure = 1;
    agent.agents[holder].fails_then = Code::io;
  }
  agent.restart(7, run, bytes);
  agent.expect_over(Code::io);
  EXPECT_THAT(agent.rank(0).message, HasSubstr("rank 2's object"));
  EXPECT_THAT(agent.rank(0).message, ::testing::ContainsRegex("nodes (1, 3|3, 1)"));
  agent.expect_untouched();
}

// It may come back with what it has: no older version may be taken in the place of this one.
TEST_F(RestartAround, AHolderThatFallsSilentWhileItIsReadIsNoReasonToPassOver) {
  for (const auto& [first, then] : {std::pair(1, 3), std::pair(3, 1)}) {
    AgentHarness agent(64, 8, {0, 2});
    agent.put_local(file0);
    for (const NodeId holder : {1, 3}) agent.put_at(holder, file1);
    agent.agents[first].reads_until_failure = 1;
    agent.agents[then].fails = Code::io;
    agent.restart(7, run, bytes);
    agent.expect_over(Code::agent_lost);
    agent.expect_untouched();
  }
}

TEST_F(RestartAround, WhereARebuiltFileCannotBeReadTheNextOneRebuildsIt) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  agent.put_durable(file1);
  for (const NodeId holder : {2, 3}) agent.put_parity_at(holder, file1);
  agent.agents[2].reads_until_failure = 1;
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.rebuilt_at, (std::vector<NodeId>{2, 3}));
  EXPECT_EQ(agent.durable.reads, 0) << "farther";
}

TEST_F(RestartAround, WhatParityDoesNotMakeUpForIsLost) {
  AgentHarness agent(64, 8, {0, 2});
  agent.put_local(file0);
  for (const NodeId holder : {2, 3}) agent.put_parity_at(holder, file1);
  agent.rebuilding_fails = Error(Code::lost, "2 of the 3 blocks are left");
  agent.restart(7, run, bytes);
  agent.expect_over(Code::lost);
  EXPECT_THAT(agent.rank(0).message, HasSubstr("2 of the 3 blocks are left"));
  agent.expect_untouched();
}

// Whose file was damaged hears of it again once there is one that it can be replaced by.
TEST_F(RestartAround, ADamagedHolderHearsOfTheFileThatWasMadeAgain) {
  AgentHarness agent(64, 8, {2});
  agent.put_at(1, file1);
  agent.agents[1].damage.insert({1, chunk_of(file1, 2, 0)});
  agent.put_parity_at(3, file1);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  const std::pair<NodeId, FileOf> one{1, file1.file};
  EXPECT_EQ(agent.damaged, (std::vector{one, one}));
}

TEST_F(RestartAround, DamageEverywhereIsCorrupt) {
  AgentHarness agent(64, 8, {2});
  for (const NodeId holder : {1, 3}) {
    agent.put_at(holder, file1);
    agent.agents[holder].damage.insert({1, chunk_of(file1, 2, 0)});
  }
  agent.restart(7, run, bytes);
  agent.expect_over(Code::corrupt);
  EXPECT_EQ(agent.damaged.size(), 2u);
  agent.expect_untouched();
}

TEST_F(RestartAround, TheOwnDiskIsReadTwiceBeforeAnotherAgentIsAsked) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_local(file0);
  agent.put_at(2, file0);
  agent.disk.damage.insert({0, chunk_of(file0, 1, 2)});
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.rank(1).plans, 3);
  EXPECT_EQ(agent.agents[2].reads, 3) << "rank 0 goes on with the disk";
  EXPECT_THAT(agent.damaged, ElementsAre(std::pair(NodeId{0}, file0.file)));
  EXPECT_TRUE(agent.state().on_disk(7)->damage.empty()) << "the version is not set aside";
}

TEST_F(RestartAround, DamageInThePoolIsReadFromTheDisk) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_in_pool(file0);
  agent.put_local(file0);
  const auto& chunk = agent.state().memory.at(7).chunks.front().in_pool;
  agent.state().pool.buffer(chunk.buffer)[0] ^= std::byte{1};
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.disk.reads, 6);
  EXPECT_EQ(agent.state().memory.count(7), 0u);
}

TEST_F(RestartAround, DeliversOnlyWhenAllRanksOfTheNodeProceed) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_local(file0);
  agent.proceed_at_once = false;
  agent.restart(7, run, bytes);
  agent.settle();
  for (const Rank rank : {0, 1}) EXPECT_TRUE(agent.rank(rank).ready && !agent.rank(rank).over);
  agent.proceed(0, true);
  agent.settle();
  EXPECT_FALSE(agent.rank(0).over);
  agent.restore().proceed(AgentHarness::connection(1), {7, 77, true});  // of another attempt
  agent.settle();
  EXPECT_FALSE(agent.rank(0).over);
  agent.proceed(1, true);
  agent.expect_restored(run);
}

TEST_F(RestartAround, IsTakenBackWhereOtherNodesCannot) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_local(file0);
  agent.proceed_at_once = false;
  agent.restart(7, run, bytes);
  agent.settle();
  agent.proceed(1, false);
  agent.proceed(0, false);
  agent.expect_over(Code::again);
  EXPECT_EQ(agent.withdrawals, 2);
  agent.expect_untouched();
}

TEST_F(RestartAround, ARankThatDiesAtReadyEndsItForAll) {
  AgentHarness agent(64, 8, {0, 1});
  agent.put_local(file0);
  agent.proceed_at_once = false;
  agent.restart(7, run, bytes);
  agent.settle();
  agent.proceed(0, true);
  agent.leave(1);
  agent.expect_over(Code::rank_lost);
  EXPECT_EQ(agent.withdrawals, 1);
  for (const std::byte byte : agent.rank(0).region) ASSERT_EQ(byte, ours);
}

TEST_F(RestartAround, ARankThatDiesWhileTheDirectoryIsAskedEndsIt) {
  AgentHarness agent(64, 8, {2, 3});
  agent.put_at(1, file1);
  agent.restart(7, run, bytes);
  agent.leave(3);
  agent.expect_over(Code::rank_lost);
}

TEST_F(RestartAround, ARankThatDiesWhileAnAgentSendsLeavesTheBufferUntilItHasCome) {
  AgentHarness agent(64, 8, {2});
  agent.put_at(1, file1);
  agent.restart(7, run, bytes);
  while (agent.agents[1].reads == 0) ASSERT_TRUE(agent.step());
  agent.leave(2);
  EXPECT_FALSE(agent.restore().done());
  agent.settle();
  EXPECT_TRUE(agent.restore().done());
}

TEST_F(RestartAround, TwoRunsThatUsedTheSameNumberAreNotMixed) {
  const NodeFile other = saved(0, 12);
  AgentHarness agent(64, 8, {0, 1});
  agent.put_local(other);
  agent.put_at(2, file0);
  agent.put_durable(other);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.disk.reads, 0);
  agent.restart(7, 12, bytes);
  agent.expect_restored(12);
  agent.restart(7, 13, bytes);
  agent.expect_over(Code::not_found);
}

TEST_F(RestartAround, ASmallPoolReadsTwiceAndANewHolderIsFoundInTheSecondPassToo) {
  AgentHarness agent(2, 8, {2, 3});
  for (const NodeId holder : {1, 2, 3}) {
    agent.put_at(holder, file1);
    agent.agents[holder].reads_until_failure = 4;
  }
  agent.restart(7, run, bytes);
  agent.settle();
  int reads = 0;
  for (const NodeId holder : {1, 2, 3}) reads += agent.agents[holder].reads;
  EXPECT_GT(reads, 12) << "each of six chunks twice, and some in vain";
  agent.expect_restored(run);
}

TEST_F(RestartAround, FromTheDurableDirectoryAloneAfterTheLossOfAllNodes) {
  AgentHarness agent(64, 8, {1, 4});  // other ranks than any node had
  agent.put_durable(file0);
  agent.put_durable(file1);
  agent.put_durable(file2);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
}

TEST_F(RestartAround, AVersionThatBecameDurableAfterTheRunBeganIsFoundBeforeItIsGivenUp) {
  AgentHarness agent(64, 8, {1, 4});
  for (const NodeFile* file : {&file0, &file1, &file2}) agent.put_durable_late(*file);
  agent.restart(7, run, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.durable_looks, 1);
}

TEST_F(RestartAround, WhatIsNotDurableEitherIsLookedForOnce) {
  AgentHarness agent(64, 8, {1, 4});
  agent.put_at(2, file0);
  agent.state().durable_settings.dir = "/durable";
  agent.restart(7, run, bytes);
  agent.expect_over(Code::not_found);
  EXPECT_EQ(agent.durable_looks, 1);
}

TEST_F(RestartAround, AnotherNumberOfRanksIsSaidAndFetchedObjectByObject) {
  AgentHarness agent(64, 4, {0, 1});
  agent.put_local(file0);
  agent.put_at(3, file2);
  agent.restart(7, run, bytes);
  agent.expect_over(Code::rank_count);
  EXPECT_EQ(agent.rank(0).plan.saved_ranks, 8u);
  for (const Rank of : {1, 5}) {
    agent.fetch(0, of, 7, run, bytes);
    agent.settle();
    EXPECT_EQ(agent.rank(0).code, Code::ok) << agent.rank(0).message;
    EXPECT_TRUE(agent.rank(0).region == object_of(of, run, bytes));
    EXPECT_FALSE(agent.rank(0).ready) << "nobody has to agree";
  }
  agent.fetch(0, 5, 7, 0, bytes);  // the run is that of the version which is known here
  agent.settle();
  EXPECT_EQ(agent.rank(0).code, Code::ok) << agent.rank(0).message;
  agent.fetch(0, 3, 7, run, bytes);
  agent.settle();
  EXPECT_EQ(agent.rank(0).code, Code::not_found);
}

// Whatever fails: everybody has the right bytes, or everybody's own; and every buffer comes back.
TEST_F(RestartAround, RandomFaults) {
  std::map<Code, int> outcomes;
  for (std::uint64_t round = 0; round < 400; ++round) {
    SCOPED_TRACE(test::replay() + ", round " + std::to_string(round));
    test::Random random(test::seed() + round);
    const bool small = random.between(0, 3) == 0;
    AgentHarness agent(small ? 2 : 64, 8, {0, 1, 2, 3});
    const auto hurt = [&](AgentHarness::Disk& disk, const NodeFile& file) {
      if (random.between(0, 2) == 0)
        disk.reads_until_failure = static_cast<int>(random.between(0, 14));
      if (random.between(0, 3) == 0) disk.busy = static_cast<int>(random.between(0, 9));
      if (random.between(0, 5) == 0) disk.bad_manifests = true;
      for (const auto& chunk : file.manifest.chunks) {
        if (random.between(0, 15) == 0) disk.damage.insert({file.file.node, chunk.segment_offset});
      }
    };
    for (const NodeFile* file : {&file0, &file1}) {
      if (random.between(0, 2) == 0) agent.put_local(*file);
      if (random.between(0, 2) == 0) agent.put_durable(*file);
      for (const NodeId holder : {1, 2, 3}) {
        if (random.coin()) continue;
        agent.put_at(holder, *file);
        hurt(agent.agents[holder], *file);
      }
    }
    if (!small && random.between(0, 3) == 0) agent.put_in_pool(file0);
    if (random.between(0, 4) == 0) hurt(agent.disk, file0);
    agent.disk.busy = 0;
    agent.proceed_at_once = random.between(0, 3) != 0;
    agent.restart(7, run, bytes);
    agent.settle();
    if (!agent.proceed_at_once && agent.rank(0).ready) {
      const bool good = random.coin();
      for (const Rank rank : {0, 1, 2, 3}) agent.proceed(rank, good);
      agent.settle();
    }
    const Code code = agent.rank(0).code;
    ++outcomes[code];
    agent.expect_over(code);
    if (code == Code::ok) agent.expect_restored(run);
    const bool second_pass =
        small && code == Code::io;  // its regions are undefined, and that is said
    if (code != Code::ok && !second_pass) agent.expect_untouched();
    if (HasFailure()) break;
  }
  EXPECT_GT(outcomes[Code::ok], 100);
  EXPECT_GT(outcomes[Code::again] + outcomes[Code::corrupt] + outcomes[Code::not_found], 20);
}

TEST(Candidate, IsTheNewestThatIsRecordedAnywhereHere) {
  AgentHarness agent(64, 8, {0});
  const auto newest = [&](VersionNumber below = 0, RunId below_run = 0) {
    return newest_candidate(agent.state(), {below, below_run});
  };
  EXPECT_EQ(newest().code, Code::none);
  const NodeFile local({4, 20, 0}, 4, 8, {0}, bytes);
  const NodeFile durable({5, 21, 0}, 4, 6, {0}, bytes);
  const NodeFile kept({5, 22, 3}, 4, 8, {6}, bytes);
  const NodeFile unrecorded({9, 20, 3}, 4, 8, {6}, bytes);
  agent.put_local(local);
  EXPECT_EQ(newest().version, 4u);
  agent.put_durable(durable);
  EXPECT_EQ(newest().run, 21u);
  EXPECT_EQ(newest().saved_ranks, 6u);
  agent.directory().add(kept.held());
  agent.directory().add(unrecorded.held(/*recorded=*/false));
  EXPECT_EQ(newest().run, 22u) << "of two runs the greater";
  EXPECT_EQ(newest(5, 22).run, 21u);
  EXPECT_EQ(newest(5, 21).version, 4u);
  EXPECT_EQ(newest(4, 20).code, Code::none);
  agent.put_in_pool(NodeFile({10, 20, 0}, 4, 8, {0}, bytes));
  EXPECT_EQ(newest().version, 10u);
}

TEST(Candidate, ThatIsDamagedInTheDurableDirectoryIsNamed) {
  AgentHarness agent(64, 8, {0});
  const auto newest = [&](VersionNumber below = 0) {
    return newest_candidate(agent.state(), {below, below == 0 ? RunId{0} : RunId{20}});
  };
  agent.put_local(NodeFile({4, 20, 0}, 4, 8, {0}, bytes));
  for (const VersionNumber version : {VersionNumber{3}, VersionNumber{6}}) {
    StoredVersion stored{version};
    stored.damage = "commit record: is not 512 bytes long";
    agent.state().versions.found(stored, Where::shared);
  }
  EXPECT_EQ(newest().version, 6u);
  EXPECT_EQ(newest().code, Code::corrupt);
  EXPECT_EQ(newest().message, "commit record: is not 512 bytes long");
  EXPECT_EQ(newest(6).version, 4u) << "it is not named twice";
  EXPECT_EQ(newest(6).code, Code::ok);
  EXPECT_EQ(newest(4).version, 3u);
  EXPECT_EQ(newest(3).code, Code::none);
  StoredVersion unreadable{6};
  unreadable.damage = "commit record: cannot be read";
  unreadable.unreadable = Error(Code::io, "");
  agent.state().versions.found(unreadable, Where::shared);
  EXPECT_EQ(newest().code, Code::io) << "what cannot be read need not be damaged";
  agent.put_local(NodeFile({6, 20, 0}, 4, 8, {0}, bytes));
  EXPECT_EQ(newest().code, Code::ok) << "another place has it";
}

TEST(Candidate, IsNotKnownWhereTheDurableDirectoryCannotBeRead) {
  AgentHarness agent(8, 8, {0});
  agent.state().versions.shared_unreadable(Error(Code::io, "not mounted"));
  const auto answer = newest_candidate(agent.state(), {});
  EXPECT_EQ(answer.code, Code::io);
  EXPECT_EQ(answer.message, "not mounted");
}

}  // namespace
}  // namespace backstay::agent::testing
