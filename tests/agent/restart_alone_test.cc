// Restarts of a run of one node: its agent chooses the version, and there are no other agents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "around_harness.h"

namespace backstay::agent::testing {
namespace {

class RestartAlone : public ::testing::Test {
 protected:
  static constexpr std::size_t bytes = 2 * slot_bytes + 1000;  // three chunks an object
  static constexpr RunId run = 11;
  // Version 7, saved by 8 ranks on 4 nodes.
  static NodeFile saved(NodeId node) {
    return {{7, run, node}, 4, 8, {2 * node, 2 * node + 1}, bytes};
  }
  const std::vector<NodeFile> files{saved(0), saved(1), saved(2), saved(3)};
};

TEST_F(RestartAlone, ReadsAllNodesFilesOfADirectory) {
  AgentHarness agent(64, 8, {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  for (const NodeFile* file : {&files[0], &files[1], &files[2], &files[3]})
    agent.put_durable(*file);
  agent.restart(0, 0, bytes);
  agent.expect_restored(run);
}

TEST_F(RestartAlone, TakesAnOlderVersionWhereItHasNotAllOfANewerOne) {
  const NodeFile old({6, 5, 0}, 1, 2, {0, 1}, bytes);
  const NodeFile newer({7, run, 0}, 4, 2, {0}, bytes);
  AgentHarness agent(64, 2, {0, 1}, 1);
  agent.put_local(old);
  agent.put_local(newer);
  agent.restart(0, 0, bytes);
  agent.expect_restored(5);
  EXPECT_TRUE(agent.state().on_disk(7)->damage.empty());
}

TEST_F(RestartAlone, TakesTheLaterOfTwoRunsThatUsedTheSameNumber) {
  const NodeFile here({7, run - 1, 0}, 1, 2, {0, 1}, bytes);
  const NodeFile there({7, run, 0}, 1, 2, {0, 1}, bytes);
  for (const VersionNumber asked : {0, 7}) {
    AgentHarness agent(64, 2, {0, 1}, 1);
    agent.put_local(here);
    agent.put_durable(there);
    agent.restart(asked, 0, bytes);
    agent.expect_restored(run);
  }
}

TEST_F(RestartAlone, ListsTheDirectoryOnceMoreBeforeItTakesAnOlderVersion) {
  const NodeFile old({6, run, 0}, 1, 2, {0, 1}, bytes);
  const NodeFile newest({7, run, 0}, 1, 2, {0, 1}, bytes);
  AgentHarness agent(64, 2, {0, 1}, 1);
  agent.put_local(old);
  agent.put_local(newest);
  agent.put_durable_late(newest);
  agent.disk.damage.insert({0, newest.manifest.chunks[0].segment_offset});
  agent.restart(0, 0, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.rank(0).plan.version, 7u);
  EXPECT_EQ(agent.durable_looks, 1);
  EXPECT_FALSE(agent.state().on_disk(7)->damage.empty()) << "it was found damaged twice";
}

// One of six chunks fits into the pool at a time.
TEST_F(RestartAlone, ReadsOnceMoreOnlyWhatARankHasNotTakenYet) {
  const NodeFile file({7, run, 0}, 1, 2, {0, 1}, bytes);
  for (const auto& [early, reads] : std::vector<std::pair<std::set<Rank>, int>>{
           {{}, 6 + 6}, {{0}, 6 + 1 + 3}, {{0, 1}, 6 + 2}}) {
    AgentHarness agent(1, 2, {0, 1}, 1);
    agent.put_local(file);
    agent.take_early = early;
    agent.restart(0, 0, bytes);
    agent.expect_restored(run);
    EXPECT_EQ(agent.disk.reads, reads);
  }
}

// The second plan is another one: nothing of the first counts.
TEST_F(RestartAlone, ForgetsWhatWasTakenOfAPlanThatWasDamaged) {
  const NodeFile old({6, 5, 0}, 1, 2, {0, 1}, bytes);
  const NodeFile newest({7, run, 0}, 1, 2, {0, 1}, bytes);
  AgentHarness agent(1, 2, {0, 1}, 1);
  agent.put_durable(old);
  agent.put_local(newest);
  agent.take_early = {0, 1};
  agent.disk.damage.insert({0, newest.manifest.chunks[4].segment_offset});
  agent.restart(0, 0, bytes);
  agent.expect_restored(5);
}

// A read error on the way sets nothing aside, and no rank of the node stays with that disk.
TEST_F(RestartAlone, LeavesAPlaceWithAllItsRanks) {
  const NodeFile file({7, run, 0}, 1, 4, {0, 1, 2, 3}, bytes);
  AgentHarness agent(64, 4, {0, 1, 2, 3}, 1);
  agent.put_local(file);
  agent.put_durable(file);
  agent.disk.fails = Code::io;
  agent.restart(0, 0, bytes);
  agent.expect_restored(run);
  EXPECT_EQ(agent.rank(0).plans, 1) << "its manifest could not be read, twice";
  EXPECT_TRUE(agent.state().on_disk(7)->damage.empty());
  EXPECT_TRUE(agent.state().on_disk(7)->doubtful);
}

// Nothing is damaged: the other ranks' objects are elsewhere.
TEST_F(RestartAlone, WithAnotherNumberOfRanksHearsWhereTheRestIs) {
  AgentHarness agent(64, 1, {0}, 1);
  agent.put_local(files[0]);
  agent.restart(0, 0, bytes);
  agent.expect_over(Code::rank_count);
  agent.fetch(0, 5, 7, 0, bytes);
  agent.settle();
  EXPECT_EQ(agent.rank(0).code, Code::not_found);
  EXPECT_THAT(agent.rank(0).message,
              ::testing::HasSubstr(
                  "not all of version 7 of job job can be brought back from this node alone; "
                  "version 7: it was saved on 4 nodes"));
  EXPECT_TRUE(agent.state().on_disk(7)->damage.empty());
}

// A read that failed may pass, and damage stays.
class NothingComesBack : public RestartAlone {
 protected:
  const NodeFile old{{6, run, 0}, 1, 2, {0, 1}, bytes};
  const NodeFile newest{{7, run, 0}, 1, 2, {0, 1}, bytes};

  void gives(VersionNumber asked, Code code, const std::string& text, AgentHarness& agent) {
    agent.restart(asked, 0, bytes);
    agent.expect_over(code);
    EXPECT_THAT(agent.rank(0).message, ::testing::HasSubstr(text));
  }
};

TEST_F(NothingComesBack, SaysThatWhatCouldNotBeReadMayPass) {
  for (const VersionNumber asked : {0, 7}) {
    AgentHarness agent(64, 2, {0, 1}, 1);
    agent.put_local(newest);
    agent.disk.fails = Code::io;
    gives(asked, Code::io,
          asked == 0 ? "version 7: the disk fails" : "cannot be brought back now: the disk fails",
          agent);
  }
}

TEST_F(NothingComesBack, SaysThatDamageStays) {
  for (const VersionNumber asked : {0, 7}) {
    AgentHarness agent(64, 2, {0, 1}, 1);
    agent.put_local(newest);
    agent.disk.damage.insert({0, newest.manifest.chunks[0].segment_offset});
    gives(asked, Code::corrupt, asked == 0 ? "version 7: " : "is damaged: ", agent);
  }
}

// Of several versions one is enough: another try may take that.
TEST_F(NothingComesBack, SaysOfSeveralReasonsWhatMayPass) {
  for (const Where damaged : {Where::disk, Where::shared}) {
    AgentHarness agent(64, 2, {0, 1}, 1);
    agent.put_local(newest);
    agent.put_durable(old);
    (damaged == Where::disk ? agent.durable : agent.disk).fails = Code::io;
    const NodeFile& bad = damaged == Where::disk ? newest : old;
    (damaged == Where::disk ? agent.disk : agent.durable)
        .damage.insert({0, bad.manifest.chunks[0].segment_offset});
    gives(0, Code::io, "version 6: ", agent);
  }
}

// It was removed meanwhile, and nothing is known against it.
TEST_F(NothingComesBack, CallsNoVersionDamagedThatIsGone) {
  for (const VersionNumber asked : {0, 7}) {
    AgentHarness agent(64, 2, {0, 1}, 1);
    agent.put_local(newest);
    agent.disk.fails = Code::again;
    gives(asked, Code::io, "the disk fails", agent);
    EXPECT_THAT(agent.rank(0).message, ::testing::Not(::testing::HasSubstr("damaged")));
  }
}

// A rank's object is nowhere: no place has given a reason.
TEST_F(NothingComesBack, SaysOfAVersionWithoutAReasonThatItCannotBeBroughtBackNow) {
  const NodeFile part({7, run, 0}, 1, 2, {0}, bytes);
  AgentHarness agent(64, 2, {0, 1}, 1);
  agent.put_in_pool(part);
  gives(7, Code::io, "version 7 of job job cannot be brought back now", agent);
}

TEST_F(NothingComesBack, NamesEightVersionsAndCountsTheOthers) {
  AgentHarness agent(64, 2, {0, 1}, 1);
  for (VersionNumber number = 1; number <= 9; ++number)
    agent.state().versions.found({number, Level::local, newest.record()}, Where::disk);
  for (VersionNumber number = 1; number <= 9; ++number)
    agent.state().versions.quarantined(number, Where::disk, "a bad byte");
  gives(0, Code::corrupt, "version 2: a bad byte; and 1 more", agent);
  EXPECT_THAT(agent.rank(0).message, ::testing::Not(::testing::HasSubstr("version 1:")));
}

}  // namespace
}  // namespace backstay::agent::testing
