#include "agent/job/commit_coordinator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "agent/checkpoint/version_output.h"
#include "agent/group/blocker_publisher.h"
#include "agent/version/levels.h"
#include "agent/version/warnings.h"
#include "base/machine.h"
#include "commit_coordinator_world.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(CommitCoordinatorTest, OfOneNodeIsRecordedOnceSealedAndToldOnceRecorded) {
  alone_.begin_run(7);
  alone_.capture(1, 7);
  alone_.seal(1, 7);
  EXPECT_TRUE(alone_.state.is_prepared(alone_.state.memory[1]));
  EXPECT_FALSE(alone_.state.is_safe(alone_.state.memory[1]));
  EXPECT_THAT(alone_.asked(), ElementsAre(1));
  EXPECT_THAT(alone_.told(), IsEmpty());
  EXPECT_TRUE(alone_.coordinator.settled());
  alone_.write_record(1, 7);
  EXPECT_THAT(alone_.told(), ElementsAre(std::pair(1, Level::local)));
}

TEST_F(CommitCoordinatorTest, WhenItsOwnPartIsOnTheDiskIsInTheLogBeforeAllAre) {
  begin_run(7);
  MemoryVersion& version = a_.capture(1, 7);
  version.handed_ns = clock_.wall_ns();
  clock_.advance(500'000'000);
  version.captured_ns = clock_.wall_ns();
  clock_.advance(1'500'000'000);
  a_.seal(1, 7);
  ASSERT_EQ(a_.events.size(), 1U);
  const auto event = nlohmann::json::parse(a_.events.front());
  EXPECT_EQ(event["event"], "written");
  EXPECT_EQ(event["version"], 1);
  EXPECT_EQ(event["seconds"], 1.5);
  EXPECT_EQ(event["write_seconds"], 2.0) << "the disk had its first bytes before";
  EXPECT_THAT(a_.told(), IsEmpty());
}

// Its buffers went to newer versions while the other node took its time.
TEST_F(CommitCoordinatorTest, ThatAVersionIsLocalIsInTheLogAlsoWhereThePoolHasNothingOfIt) {
  begin_run(7);
  StoredVersion stored = a_.stored(3, 7);
  stored.record.payload_bytes = 100;
  stored.record.captured_ns = clock_.wall_ns();
  clock_.advance(1'500'000'000);
  VersionOutput output(a_.state);
  output.local(stored);
  ASSERT_EQ(a_.events.size(), 1U);
  const auto event = nlohmann::json::parse(a_.events.front());
  EXPECT_EQ(event["event"], "local");
  EXPECT_EQ(event["version"], 3);
  EXPECT_EQ(event["bytes"], 100);
  EXPECT_EQ(event["seconds"], 1.5);
  output.local(a_.stored(2, 6));
  EXPECT_EQ(a_.events.size(), 1U) << "of a run that is over";
}

TEST_F(CommitCoordinatorTest, OfOneNodeIsRecordedAlsoAfterItsRun) {
  alone_.begin_run(7);
  alone_.begin_run(8);  // the run of 7 had nothing in doubt: it is forgotten
  alone_.capture(1, 7);
  alone_.seal(1, 7);
  EXPECT_THAT(alone_.asked(), ElementsAre(1));
  alone_.write_record(1, 7);
  EXPECT_THAT(alone_.told(), ElementsAre(std::pair(1, Level::local)));
}

TEST_F(CommitCoordinatorTest, OfSeveralNodesWaitsForAll) {
  begin_run(7);
  a_.seal(1, 7);
  ASSERT_TRUE(pass_ticks());
  EXPECT_FALSE(a_.has_asked());
  EXPECT_TRUE(a_.coordinator.in_doubt());
  EXPECT_FALSE(b_.coordinator.in_doubt());
  b_.seal(1, 7);
  ASSERT_TRUE(until([&] { return a_.has_asked() && b_.has_asked(); }));
  EXPECT_THAT(a_.asked(), ElementsAre(1));
  EXPECT_THAT(b_.asked(), ElementsAre(1));
  a_.write_record(1, 7);
  ASSERT_TRUE(pass_ticks());
  EXPECT_THAT(a_.told(), IsEmpty());
  EXPECT_FALSE(a_.coordinator.in_doubt());
  b_.write_record(1, 7);
  ASSERT_TRUE(until([&] { return !a_.told().empty() && !b_.told().empty(); }));
  EXPECT_THAT(a_.told(), ElementsAre(std::pair(1, Level::local)));
  EXPECT_THAT(b_.told(), ElementsAre(std::pair(1, Level::local)));
}

TEST_F(CommitCoordinatorTest, OfSeveralNodesIsDecidedAfterItsRunToo) {
  begin_run(7);
  a_.seal(1, 7);
  b_.capture(1, 7);
  begin_run(8);
  b_.seal(1, 7);
  ASSERT_TRUE(until([&] { return a_.has_asked() && b_.has_asked(); }));
  a_.write_record(1, 7);
  b_.write_record(1, 7);
  ASSERT_TRUE(until([&] { return !a_.told().empty() && !b_.told().empty(); }));
}

TEST_F(CommitCoordinatorTest, ASealedVersionIsWaitedForAsLongAsPatienceLasts) {
  begin_run(7);
  EXPECT_TRUE(a_.coordinator.settled());
  MemoryVersion& version = a_.capture(1, 7);
  EXPECT_FALSE(a_.coordinator.settled());
  a_.seal(1, 7);
  EXPECT_TRUE(a_.state.is_safe(version));
  EXPECT_FALSE(a_.coordinator.settled());
  EXPECT_EQ(a_.coordinator.settles_at_ns(), 0u);
  a_.coordinator.hurry();
  const std::uint64_t settles = a_.coordinator.settles_at_ns();
  ASSERT_GT(settles, clock_.monotonic_ns());
  clock_.advance(settles - clock_.monotonic_ns() - 1);
  a_.coordinator.hurry();  // does not begin anew
  EXPECT_EQ(a_.coordinator.settles_at_ns(), settles);
  EXPECT_FALSE(a_.coordinator.settled());
  clock_.advance(1);
  EXPECT_TRUE(a_.coordinator.settled());
  EXPECT_EQ(a_.coordinator.settles_at_ns(), 0u) << "or the main loop would not sleep any more";
  // What this node itself is still writing is waited for, unless it failed.
  MemoryVersion& other = a_.capture(2, 7);
  EXPECT_FALSE(a_.coordinator.settled());
  other.failed = Error(Code::io, "the disk is full");
  EXPECT_TRUE(a_.coordinator.settled());
  begin_run(8);  // which waits anew
  EXPECT_EQ(a_.coordinator.settles_at_ns(), 0u);
}

TEST_F(CommitCoordinatorTest, AnAgentThatEndsWaitsForWhoMayStillBeWriting) {
  begin_run(7);
  EXPECT_FALSE(a_.coordinator.may_be_decided());
  a_.seal(1, 7);
  EXPECT_TRUE(a_.coordinator.may_be_decided());
  a_.coordinator.hurry();  // a program comes
  clock_.advance(100'000'000'000);
  EXPECT_TRUE(a_.coordinator.may_be_decided()) << "the other node lives, and its disk may be slow";
  a_.state.versions.blocked(1, {"n1", {{1, Level::local, Code::no_space, "its disk is full"}}});
  EXPECT_FALSE(a_.coordinator.may_be_decided());
  a_.seal(2, 7);
  EXPECT_TRUE(a_.coordinator.may_be_decided()) << "of this one nothing is lacking";
  EXPECT_TRUE(a_.coordinator.in_doubt());
}

TEST_F(CommitCoordinatorTest, PatienceBeginsOnceThisNodesPartIsOnItsDisk) {
  begin_run(7);
  a_.capture(1, 7);
  a_.coordinator.hurry();
  clock_.advance(100'000'000'000);
  a_.seal(1, 7);
  EXPECT_FALSE(a_.coordinator.settled()) << "the other node had as long";
  clock_.advance(a_.coordinator.settles_at_ns() - clock_.monotonic_ns());
  EXPECT_TRUE(a_.coordinator.settled());
}

TEST_F(CommitCoordinatorTest, AnAgentThatEndsDoesNotWaitForALostNode) {
  begin_run(7);
  a_.seal(1, 7);
  ASSERT_TRUE(a_.coordinator.may_be_decided());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (a_.coordinator.run_membership()->lost().empty() &&
         std::chrono::steady_clock::now() < end) {
    pollfd news{a_.coordinator.run_membership()->descriptor(), POLLIN, 0};
    ::poll(&news, 1, 10);
    a_.coordinator.progress();  // and the other one is silent
  }
  EXPECT_FALSE(a_.coordinator.may_be_decided());
  b_.seal(1, 7);
  ASSERT_TRUE(until([&] { return a_.has_asked(); })) << "it has come back";
  EXPECT_TRUE(a_.coordinator.may_be_decided());
}

TEST_F(CommitCoordinatorTest, WhatAnotherNodeLacksIsTheAnswerToWhoWaits) {
  begin_run(7);
  b_.capture(3, 7);
  Levels levels(b_.state);
  levels.await(1, {3, Level::local});
  EXPECT_THAT(b_.answers, IsEmpty());
  const NodeBlockers said{"n0", {{3, Level::local, Code::no_space, "full"}}};
  ASSERT_TRUE(a_.coordinator.run_membership()->publish(blockers_fact, encode(said)).ok());
  ASSERT_TRUE(until([&] { return !b_.facts.empty(); }));
  auto heard = decode_blockers(b_.facts[0]);
  ASSERT_TRUE(heard.ok());
  b_.state.versions.blocked(0, *heard);
  for (const auto version : b_.state.versions.take_orders().changed) levels.changed(version);
  ASSERT_EQ(b_.answers.size(), 1u);
  EXPECT_EQ(b_.answers[0].code, Code::no_space);
  EXPECT_EQ(b_.answers[0].level, Level::captured);
  EXPECT_EQ(b_.answers[0].message, "node 0 (n0) keeps version 3 from level local: full");
  levels.await(1, {3, Level::local});  // who comes later hears it too, and who only asks
  levels.query(1, 3);
  levels.await(1, {3, Level::captured});
  ASSERT_EQ(b_.answers.size(), 4u);
  EXPECT_EQ(b_.answers[1].code, Code::no_space);
  EXPECT_EQ(b_.answers[2].code, Code::no_space);
  EXPECT_EQ(b_.answers[3].code, Code::ok);
}

// A node that is lost for a moment is no reason to tell the program that its version failed.
TEST_F(CommitCoordinatorTest, WhoWaitsHopesForALostNodeForAWhile) {
  begin_run(7);
  EXPECT_GT(b_.state.lost_patience_ns, 0u);
  b_.capture(3, 7);
  b_.capture(4, 7);
  constexpr std::uint64_t patience = 3'000'000'000;
  b_.state.lost_patience_ns = patience;
  Levels levels(b_.state);
  levels.await(1, {3, Level::local});
  levels.await_newer(9, {"job", "", 3, Level::local});
  b_.state.versions.lost(tree::NodeSet::of({{0, 1}}), clock_.monotonic_ns());
  levels.changed();
  clock_.advance(patience - 1);
  levels.changed();
  EXPECT_THAT(b_.answers, IsEmpty());
  EXPECT_EQ(b_.tools_answered, 0);
  levels.query(1, 3);
  ASSERT_EQ(b_.answers.size(), 1u) << "who does not wait hears it at once";
  EXPECT_EQ(b_.answers[0].code, Code::agent_lost);
  clock_.advance(1);
  levels.changed();
  ASSERT_EQ(b_.answers.size(), 2u);
  EXPECT_EQ(b_.answers[1].message, "version 3 stays captured: node 0 is lost");
  EXPECT_EQ(b_.tools_answered, 1);
  levels.await(1, {3, Level::local});
  EXPECT_EQ(b_.answers.size(), 3u) << "it is lost for long: nothing to hope for";
  // It comes back and tells what it lacked while it was alone; it is about to make up for that.
  b_.state.versions.lost({}, clock_.monotonic_ns());
  levels.await(1, {4, Level::local});
  b_.state.versions.blocked(0, {"n0", {{4, Level::local, Code::no_space, "full"}}});
  levels.changed();
  clock_.advance(patience - 1);
  levels.changed();
  EXPECT_EQ(b_.answers.size(), 3u);
  clock_.advance(1);
  levels.changed();
  ASSERT_EQ(b_.answers.size(), 4u);
  EXPECT_EQ(b_.answers[3].code, Code::no_space);
}

TEST_F(CommitCoordinatorTest, TimeIsToldWithEachTick) {
  begin_run(7);
  const int before = a_.ticks;
  ASSERT_TRUE(pass_ticks());
  EXPECT_GT(a_.ticks, before);
}

// What lacks copies on other nodes becomes durable all the same, and the other way round.
TEST_F(CommitCoordinatorTest, WhoWaitsForDurableHearsOfTheDurableDirectoryOnly) {
  begin_run(7);
  b_.state.durable_settings.dir = "/shared";
  b_.state.replicas = 1;
  find_recorded(b_, 3, 7, Level::local);
  Levels levels(b_.state);
  levels.await(1, {3, Level::durable});
  b_.state.versions.blocked(0, {"n0", {{3, Level::protected_, Code::no_space, "full"}}});
  levels.changed(3);
  EXPECT_THAT(b_.answers, IsEmpty());
  b_.state.versions.not_copied({3, Error(Code::io, "gone"), false});
  levels.changed(3);
  ASSERT_EQ(b_.answers.size(), 1u);
  EXPECT_EQ(b_.answers[0].code, Code::io);
  levels.await(1, {3, Level::protected_});
  ASSERT_EQ(b_.answers.size(), 2u);
  EXPECT_EQ(b_.answers[1].code, Code::no_space);
}

// Whose wait has ended by its own limit asks why: about the level that it waited for, not about the
// highest.
TEST_F(CommitCoordinatorTest, WhoWaitedInVainHearsOfTheLevelThatItWaitedFor) {
  begin_run(7);
  b_.state.durable_settings.dir = "/shared";
  b_.state.replicas = 1;
  find_recorded(b_, 3, 7, Level::local);
  b_.state.lost_patience_ns = 3'000'000'000;
  Levels levels(b_.state);
  levels.await(1, {3, Level::protected_});
  b_.state.versions.lost(tree::NodeSet::of({{0, 1}}), clock_.monotonic_ns());
  levels.query(1, 3);
  levels.query(2, 3);
  ASSERT_EQ(b_.answers.size(), 2u);
  EXPECT_EQ(b_.answers[0].message, "version 3 stays local: node 0 is lost");
  EXPECT_EQ(b_.answers[1].message, "") << "nothing keeps it from being durable";
}

TEST_F(CommitCoordinatorTest, AVersionThatNewerOnesHaveOvertakenIsNoTrouble) {
  find_recorded(a_, 3, 7, Level::local);
  a_.state.versions.blocked(0, {"n0", {{3, Level::protected_, Code::not_found, "no such file"}}});
  EXPECT_EQ(warnings(a_.state).size(), 1u);
  find_in_doubt(a_, 4, 7, {0});
  EXPECT_THAT(warnings(a_.state), IsEmpty());
  a_.write_record(4, 7);
  EXPECT_THAT(warnings(a_.state), IsEmpty());
  a_.state.versions.blocked(0, {"n0", {{3, Level::protected_, Code::no_space, "full"}}});
  EXPECT_EQ(warnings(a_.state).size(), 1u);
}

// Rank 0 is on node a and looks at that one's page only.
TEST_F(CommitCoordinatorTest, ARequestOnAnyNodeReachesTheOneWithRankZero) {
  a_.state.links[0] = {};
  b_.requests.request(false);
  b_.requests.tell(b_.coordinator.run_membership());
  EXPECT_EQ(b_.requested(), 1u);
  begin_run(7);  // only now they know each other
  EXPECT_EQ(a_.requested(), 0u);
  b_.requests.tell(b_.coordinator.run_membership());
  ASSERT_TRUE(until([&] { return a_.requested() == 1; }));
  EXPECT_FALSE(a_.page->stop_requested());
  b_.requests.tell(b_.coordinator.run_membership());
  b_.requests.request(true);
  b_.requests.tell(b_.coordinator.run_membership());
  ASSERT_TRUE(until([&] { return a_.page->stop_requested(); }));
  EXPECT_EQ(a_.requested(), 2u);
  a_.requests.request(false);
  a_.requests.tell(a_.coordinator.run_membership());
  EXPECT_EQ(a_.requested(), 3u);
  ASSERT_TRUE(pass_ticks());
  EXPECT_EQ(b_.requested(), 2u) << "nobody there looks at it";
}

// The tree forgets what was said of the oldest of many versions (tree/floors.h).
TEST_F(CommitCoordinatorTest, ALevelThatANodeReachesManyVersionsLaterIsDecidedAllTheSame) {
  constexpr VersionNumber last = 80;
  const auto becomes_local = [&](VersionNumber version) {
    a_.seal(version, 7);
    b_.seal(version, 7);
    if (!until([&] { return a_.has_asked() && b_.has_asked(); })) return false;
    a_.write_record(a_.asked().back(), 7);
    b_.write_record(b_.asked().back(), 7);
    const std::pair now(version, Level::local);
    if (!until([&] { return a_.told().back() == now && b_.told().back() == now; })) return false;
    return true;
  };
  begin_run(7);
  a_.told() = b_.told() = {{0, Level::none}};
  ASSERT_TRUE(becomes_local(1));
  a_.coordinator.held_protected(1);
  for (VersionNumber version = 2; version <= last; ++version) ASSERT_TRUE(becomes_local(version));
  ASSERT_TRUE(pass_ticks());
  EXPECT_THAT(b_.protected_asked, IsEmpty());
  b_.coordinator.held_protected(1);
  ASSERT_TRUE(until([&] { return !a_.protected_asked.empty() && !b_.protected_asked.empty(); }));
  EXPECT_EQ(a_.protected_asked.front(), 1u);

  a_.write_record(1, 7, Level::protected_);
  for (VersionNumber version = last + 1; version <= 2 * last; ++version) {
    ASSERT_TRUE(becomes_local(version));
  }
  b_.write_record(1, 7, Level::protected_);
  const std::pair wanted(VersionNumber{1}, Level::protected_);
  ASSERT_TRUE(until([&] { return a_.told().back() == wanted && b_.told().back() == wanted; }));
}

// The other node may have removed its part before it could record it.
TEST_F(CommitCoordinatorTest, AnAgentThatComesBackTellsLevelProtectedOnceAllHaveRecordedIt) {
  find_recorded(a_, 3, 7, Level::protected_);
  find_recorded(b_, 3, 7, Level::local);
  begin_run(7);
  EXPECT_EQ(a_.state.versions.find(3)->announced, Level::local);
  ASSERT_TRUE(until([&] { return !b_.protected_asked.empty(); })) << "a record is a proof";
  ASSERT_TRUE(pass_ticks());
  EXPECT_THAT(a_.told(), IsEmpty());
  b_.write_record(3, 7, Level::protected_);
  ASSERT_TRUE(until([&] { return !a_.told().empty(); }));
  EXPECT_THAT(a_.told(), ElementsAre(std::pair(3, Level::protected_)));
}

// Its agent ended before it had written its part; what it had kept for the other node is no part of
// its own.
TEST_F(CommitCoordinatorTest, ACopyOfAnothersPartIsNotThisNodesPart) {
  for (DecidingNode* node : {&a_, &b_}) {
    find_in_doubt(*node, 3, 7, {1});
  }
  begin_run(7);
  ASSERT_TRUE(pass_ticks());
  EXPECT_THAT(b_.asked(), IsEmpty()) << "the other part is nowhere";
  EXPECT_FALSE(a_.coordinator.in_doubt());
  EXPECT_TRUE(b_.coordinator.in_doubt());
  a_.seal(3, 7);
  ASSERT_TRUE(until([&] { return a_.has_asked() && b_.has_asked(); }));
}

TEST_F(CommitCoordinatorTest, ARecordThatCouldNotBeWrittenIsTriedAgain) {
  begin_run(7);
  a_.seal(1, 7);
  b_.seal(1, 7);
  ASSERT_TRUE(until([&] { return a_.has_asked(); }));
  EXPECT_THAT(a_.asked(), ElementsAre(1));
  ASSERT_TRUE(pass_ticks());
  EXPECT_FALSE(a_.has_asked());
  a_.coordinator.on(RecordFailed{1, Level::local, Error(Code::io, "full")});
  EXPECT_FALSE(a_.has_asked());
  const std::vector<Blocker> blockers{{1, Level::local, Code::io, "full"}};
  EXPECT_EQ(blockers_here(a_.state), blockers);
  ASSERT_TRUE(until([&] { return a_.has_asked(); }));
  EXPECT_EQ(blockers_here(a_.state), blockers) << "until it is written";
  ASSERT_TRUE(pass_ticks());
  EXPECT_THAT(a_.asked(), ElementsAre(1));
  a_.coordinator.on(RecordFailed{1, Level::local, Error(Code::not_found, "removed")});
  ASSERT_TRUE(pass_ticks());
  EXPECT_FALSE(a_.has_asked());
  a_.write_record(1, 7);
  EXPECT_THAT(blockers_here(a_.state), IsEmpty());
}

TEST_F(CommitCoordinatorTest, ARecordThatCannotBeWrittenIsToldToTheProgramOnceAnOutage) {
  begin_run(7);
  BlockerPublisher teller(a_.state);
  UnreportedWarnings unreported;
  const auto said = [&] {
    teller.tell(a_.coordinator.run_membership(), {});
    return unreported.take(a_.state);
  };
  const auto fail = [&](VersionNumber version) {
    a_.seal(version, 7);
    a_.coordinator.on(RecordFailed{version, Level::local, Error(Code::no_space, "full")});
  };
  EXPECT_EQ(said(), "");
  fail(1);
  EXPECT_EQ(said(), fmt::format("node 0 ({}): the commit record of version 1 could not be written: "
                                "full; it is tried again: free space there, or set storage.dir",
                                host_name()));
  EXPECT_EQ(said(), "");
  fail(2);
  EXPECT_EQ(said(), "") << "it is the same outage";
  a_.write_record(1, 7);
  a_.write_record(2, 7);
  EXPECT_EQ(said(), "");
  fail(3);
  EXPECT_THAT(said(), ::testing::HasSubstr("the commit record of version 3"));
}

}  // namespace
}  // namespace backstay::agent::testing
