#include "agent/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "job_fixture.h"

namespace backstay::agent::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(JobTest, SavesAndBringsBackFromThePoolAndFromTheDisk) {
  const std::size_t size = 3 * buffer_bytes + 1234;
  open(64);
  job_->join_all(3);
  EXPECT_EQ(job_->welcome().newest, 0u);
  EXPECT_EQ(save(3, 1, size).code, Code::ok);
  job_->wait_local(1);
  const auto from_pool = job_->restart(3);
  expect_back(from_pool, 3, 1, size);
  EXPECT_TRUE(from_pool.from_pool);

  open(64);
  job_->join_all(3, 8);
  EXPECT_EQ(job_->welcome().newest, 1u);
  const auto from_disk = job_->restart(3);
  expect_back(from_disk, 3, 1, size);
  EXPECT_FALSE(from_disk.from_pool);
  // The ranks have exchanged the chunks: the pool keeps no copy of what came from the disk.
  EXPECT_EQ(job_->pool().free_count(), job_->pool().count());
  expect_back(job_->restart(3), 3, 1, size);
}

TEST_F(JobTest, NoBufferOfAGivenUpPlanIsUsedBeforeTheRanksHaveTheirBytesBack) {
  const std::size_t size = 3 * buffer_bytes;
  open(64);
  job_->join_all(2);
  ASSERT_EQ(save(2, 1, size).code, Code::ok);
  job_->wait_local(1);
  open(64);
  job_->join_all(2, 8);
  job_->corrupt_next_chunk_of(1);
  expect_back(job_->restart(2), 2, 1, size);
  EXPECT_EQ(job_->withdrawals(), 2);
}

TEST_F(JobTest, ARankThatDiesInARestartLeavesTheOthersTheirBytes) {
  const std::size_t size = 3 * buffer_bytes;
  open(64);
  job_->join_all(3);
  ASSERT_EQ(save(3, 1, size).code, Code::ok);
  job_->wait_local(1);
  open(64);
  job_->join_all(3, 8);
  job_->hold_chunks_of(2);
  job_->after_step = [this] {
    if (!job_->holds_chunks()) return;
    job_->after_step = nullptr;
    job_->leave(2, /*goodbye=*/false);
  };
  EXPECT_EQ(job_->restart(3).code, Code::rank_lost);
  EXPECT_EQ(job_->withdrawals(), 2);
  job_->run_until("the end of reading",
                  [this] { return job_->pool().free_count() == job_->pool().count(); });
}

TEST_F(JobTest, APoolSmallerThanTheVersionMakesRanksWaitAndRestartsInTwoPasses) {
  const std::size_t size = 10 * buffer_bytes + 5;
  open(4);
  job_->join_all(2);
  EXPECT_EQ(save(2, 1, size).code, Code::ok);
  // It was told only when it was on the disk.
  EXPECT_EQ(job_->job().level_of(1).level, Level::local);
  EXPECT_EQ(save(2, 2, size).code, Code::ok);
  expect_back(job_->restart(2), 2, 2, size);
  open(4);
  job_->join_all(2, 8);
  expect_back(job_->restart(2), 2, 2, size);
  EXPECT_EQ(job_->pool().free_count(), job_->pool().count());
}

TEST_F(JobTest, ARankFillsOnlyBuffersThatItHasTouched) {
  // Room for one version and one more buffer a rank: each version takes the place of the last.
  constexpr std::uint32_t ranks = 2;
  open(ranks * 5);
  job_->join_all(ranks);
  for (VersionNumber version = 1; version <= 4; ++version) {
    const auto data = [&](Rank rank) { return pattern(rank, version, 4 * buffer_bytes); };
    ASSERT_EQ(job_->capture(ranks, version, data).code, Code::ok);
    job_->wait_local(version);
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const HomeRange home = job_->pool().home_of(rank, ranks);
    EXPECT_EQ(job_->granted_to(rank).size(), 4u * 4u);
    EXPECT_THAT(job_->granted_to(rank),
                ::testing::Each(::testing::AllOf(::testing::Ge(home.first),
                                                 ::testing::Lt(home.first + home.count))));
  }
}

TEST_F(JobTest, AnswersToAPlanThatWasGivenUpDoNotCount) {
  const std::size_t size = 3 * buffer_bytes;
  open(64);
  job_->join_all(2);
  ASSERT_EQ(save(2, 1, size).code, Code::ok);
  job_->wait_local(1);
  open(64);
  job_->join_all(2, 8);
  job_->send_stale_answers();
  expect_back(job_->restart(2), 2, 1, size);
}

TEST_F(JobTest, ARankThatComesBackToItsRunIsNotLostAnyMore) {
  open(64);
  job_->join_all(2);
  job_->leave(1, /*goodbye=*/false);
  ASSERT_TRUE(job_->join(1, 2).ok());
  EXPECT_EQ(save(2, 1, 1000).code, Code::ok);
}

TEST_F(JobTest, RequestsToCheckpointAreCountedAnewForEveryRun) {
  open(16);
  job_->join_all(1);
  EXPECT_EQ(job_->requests(), 0u);
  job_->job().request(/*stop=*/true);
  EXPECT_EQ(job_->requests(), 1u);
  EXPECT_TRUE(job_->job().stop_requested());
  job_->leave(0);
  job_->join_all(1, 8);
  EXPECT_EQ(job_->requests(), 0u);
  EXPECT_FALSE(job_->job().stop_requested());
}

TEST_F(JobTest, ALostRankGivesTheVersionUpForAll) {
  open(64);
  job_->join_all(3);
  ASSERT_EQ(save(3, 1, 1000).code, Code::ok);
  job_->wait_local(1);
  for (Rank rank = 0; rank < 3; ++rank) job_->begin(rank, 2, pattern(rank, 2, 2 * buffer_bytes));
  job_->run_until("sent", [&] { return job_->sent_all(0) && job_->sent_all(1); });
  job_->end(0);
  job_->leave(2, /*goodbye=*/false);
  EXPECT_EQ(job_->take<wire::Captured>(0).code, Code::rank_lost);
  EXPECT_EQ(job_->take<wire::Captured>(1).code, Code::rank_lost);
  // A new run of the job goes on with the version that exists, and gets another number.
  job_->leave(0, false);
  job_->leave(1, false);
  job_->join_all(3, 9);
  EXPECT_EQ(job_->welcome().newest, 2u);
  expect_back(job_->restart(3), 3, 1, 1000);
  ASSERT_EQ(save(3, 3, 1000).code, Code::ok);
  job_->wait_local(3);
  EXPECT_FALSE(fs::exists(path(2, "commit.local")));
}

TEST_F(JobTest, AToolThatWaitsIsNotToldOfAVersionThatWasGivenUp) {
  constexpr Rank tool = 9;  // as far as the harness is concerned
  open(64);
  job_->join_all(2);
  job_->job().await_newer(JobHarness::connection(tool), {"job", "/unused", 0});
  job_->begin(0, 1, pattern(0, 1, 100));
  job_->leave(1, /*goodbye=*/false);
  EXPECT_EQ(job_->take<wire::Captured>(0).code, Code::rank_lost);
  EXPECT_FALSE(job_->has<wire::Answer>(tool));
  job_->leave(0);
  job_->join_all(2, 9);
  ASSERT_EQ(save(2, 2, 100).code, Code::ok);
  job_->run_until("answer", [&] { return job_->has<wire::Answer>(tool); });
  const auto answer = job_->take<wire::Answer>(tool);
  EXPECT_EQ(answer.code, Code::ok);
  EXPECT_THAT(answer.json, ::testing::HasSubstr("\"version\":2"));
}

TEST_F(JobTest, ARankLostBetweenVersionsDoesNotHangTheOthers) {
  open(64);
  job_->join_all(2);
  job_->leave(1, /*goodbye=*/false);
  job_->begin(0, 1, pattern(0, 1, 100));
  EXPECT_EQ(job_->take<wire::Captured>(0).code, Code::rank_lost);
}

TEST_F(JobTest, KeepsAsManyVersionsAsConfigured) {
  open(64);
  job_->join_all(1);  // keep = 2
  for (VersionNumber version = 1; version <= 5; ++version) {
    ASSERT_EQ(save(1, version, 5000).code, Code::ok);
    job_->wait_local(version);
  }
  job_->run_until("removed", [&] { return !fs::exists(path(3, "node-0000000.segment")); });
  EXPECT_TRUE(fs::exists(path(4, "commit.local")));
  EXPECT_TRUE(fs::exists(path(5, "commit.local")));
  EXPECT_EQ(job_->job().level_of(1).code, Code::not_found);
}

TEST_F(JobTest, RetentionLeavesAVersionThatSomebodyReads) {
  const std::size_t size = 3 * buffer_bytes;
  open(64);
  job_->join_all(1);  // keep = 2
  for (VersionNumber version = 1; version <= 2; ++version) {
    ASSERT_EQ(save(1, version, size).code, Code::ok);
    job_->wait_local(version);
  }
  open(64);
  job_->join_all(1, 8);
  job_->hold_chunks(true);
  job_->start_fetch(0, 1);
  job_->run_until("chunks", [&] { return job_->holds_chunks(); });
  for (VersionNumber version = 3; version <= 5; ++version) {
    ASSERT_EQ(save(1, version, size).code, Code::ok);
    job_->wait_local(version);
  }
  job_->run_until("removed", [&] { return !fs::exists(path(2, "node-0000000.segment")); });
  EXPECT_TRUE(fs::exists(path(1, "commit.local")));
  job_->hold_chunks(false);
  const auto back = job_->fetched(0);
  ASSERT_EQ(back.code, Code::ok) << back.message;
  EXPECT_TRUE(back.data.at(0) == pattern(0, 1, size));
  EXPECT_FALSE(fs::exists(path(1, "damaged")));
  // Nobody reads it any more.
  ASSERT_EQ(save(1, 6, size).code, Code::ok);
  job_->run_until("removed", [&] { return !fs::exists(path(1, "node-0000000.segment")); });
}

TEST_F(JobTest, AFetchMovesOnlyTheChunksOfItsRange) {
  for (const bool from_disk : {false, true}) {
    open(64);
    job_->join_all(1, from_disk ? 8 : 7);
    if (!from_disk) {
      ASSERT_EQ(save(1, 1, 10 * buffer_bytes).code, Code::ok);
      job_->wait_local(1);
    }
    job_->hold_chunks(true);
    const std::uint64_t begin = 4 * buffer_bytes - 1;
    job_->receive(0, wire::Fetch{1, 0, begin, buffer_bytes + 1, false});
    job_->run_until("chunks", [&] { return job_->held_chunks().size() >= 2; });
    std::set<std::uint64_t> offsets;
    for (const auto& chunk : job_->held_chunks()) offsets.insert(chunk.object_offset);
    EXPECT_THAT(offsets, ::testing::ElementsAre(3 * buffer_bytes, 4 * buffer_bytes));
    EXPECT_EQ(job_->held_chunks().size(), 2u);
    job_->leave(0);
  }
}

TEST_F(JobTest, AFullDiskLeavesTheVersionCapturedAndIsTriedAgain) {
  open(64);
  job_->join_all(2);
  trouble_->full = true;
  ASSERT_EQ(save(2, 1, 3000).code, Code::ok);
  job_->run_until("failed", [&] { return job_->job().level_of(1).code != Code::ok; });
  EXPECT_EQ(job_->job().level_of(1).level, Level::captured);
  EXPECT_EQ(job_->job().level_of(1).code, Code::no_space);
  expect_back(job_->restart(2), 2, 1, 3000);  // it is in the pool
  // Until then it is not tried again.
  job_->run_until("all back", [&] { return job_->job().state().memory.at(1).writing.empty(); });
  trouble_->full = false;
  ASSERT_EQ(save(2, 2, 3000).code, Code::ok);
  job_->wait_local(2);
  job_->wait_local(1);
}

TEST_F(JobTest, AnAgentThatEndsTriesOnceMoreToWriteWhatItHasInMemoryOnly) {
  open(64);
  job_->join_all(1);
  trouble_->full = true;
  ASSERT_EQ(save(1, 1, 3000).code, Code::ok);
  const auto all_back = [&] { return job_->job().state().memory.at(1).writing.empty(); };
  job_->run_until("failed", [&] { return writing_fails() && all_back(); });
  job_->leave(0);
  EXPECT_EQ(job_->job().only_in_memory().size(), 1u);
  trouble_->full = false;
  job_->job().last_try();
  EXPECT_TRUE(job_->job().busy());
  job_->wait_local(1);
  EXPECT_EQ(job_->job().only_in_memory().size(), 0u);
}

TEST_F(JobTest, TheProgramHearsOnceThatItsVersionsDoNotReachTheDisk) {
  open(64);
  job_->join_all(2);
  const auto fails = [&](VersionNumber version) {
    trouble_->full = true;
    const std::string said = save(2, version, 3000).message;
    const auto all_back = [&] { return job_->job().state().memory.at(version).writing.empty(); };
    job_->run_until("failed", [&] { return writing_fails() && all_back(); });
    return said;
  };
  // Whether it is captured before its write fails depends on the store's thread.
  std::string said = fails(1);
  said += fails(2);
  EXPECT_THAT(
      said, ::testing::MatchesRegex("version [12] could not be written: the disk is full; [^;]*"));
  EXPECT_EQ(fails(3), "");
  trouble_->full = false;
  EXPECT_EQ(save(2, 4, 3000).message, "");
  job_->wait_local(4);
  said = fails(5);
  said += fails(6);
  EXPECT_THAT(said, ::testing::MatchesRegex("version [56] could not be written: [^;]*; [^;]*"));
}

TEST_F(JobTest, AFullDiskAndAFullPoolFailTheNextVersionWithTheReason) {
  open(4);
  job_->join_all(1);
  trouble_->full = true;
  ASSERT_EQ(save(1, 1, 3 * buffer_bytes).code, Code::ok);
  job_->run_until("failed", [&] { return job_->job().level_of(1).code != Code::ok; });
  const auto second = save(1, 2, 3 * buffer_bytes);
  EXPECT_EQ(second.code, Code::no_space) << second.message;
  EXPECT_EQ(job_->job().level_of(1).level, Level::captured);  // what was said stays true
  trouble_->full = false;
  ASSERT_EQ(save(1, 3, 3 * buffer_bytes).code, Code::ok);
  job_->wait_local(3);
}

TEST_F(JobTest, WhatIsRemovedBeforeItsRecordWasWrittenLeavesThePool) {
  open(4);
  job_->join_all(1);
  ASSERT_EQ(save(1, 1, 3 * buffer_bytes).code, Code::ok);
  const JobState& state = job_->job().state();
  job_->run_until("prepared", [&] { return state.is_prepared(state.memory.at(1)); });
  ASSERT_FALSE(state.is_local(state.memory.at(1)));
  job_->job().on(Removed{{1}});
  EXPECT_EQ(job_->pool().free_count(), 4u);
}

TEST_F(JobTest, TwoRunsOfOneJobAreRefused) {
  open(16);
  job_->join_all(2, 7);
  const Status second = job_->join(0, 2, 8);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::busy);
  EXPECT_THAT(second.error().message(), ::testing::HasSubstr("BACKSTAY_JOB"));
  EXPECT_THAT(second.error().message(), ::testing::HasSubstr("rank 0 of 2 is process 4000"));
}

TEST_F(JobTest, AnotherNumberOfRanksIsAnErrorAndLosesNothing) {
  open(16);
  job_->join_all(2);
  ASSERT_EQ(save(2, 1, 100).code, Code::ok);
  job_->wait_local(1);
  job_->leave(0);
  job_->leave(1);
  job_->join_all(3, 8);
  const auto back = job_->restart(3);
  EXPECT_EQ(back.code, Code::rank_count);
  EXPECT_FALSE(fs::exists(path(1, "damaged")));
  for (Rank rank = 0; rank < 3; ++rank) job_->leave(rank);
  job_->join_all(2, 9);
  expect_back(job_->restart(2), 2, 1, 100);
}

TEST_F(JobTest, NothingSavedIsItsOwnAnswer) {
  open(16);
  job_->join_all(2);
  EXPECT_EQ(job_->restart(2).code, Code::none);
  EXPECT_EQ(job_->restart(2, 5).code, Code::not_found);
}

TEST_F(JobTest, ARankThatHandsOverWhatItDoesNotOwnIsCutOff) {
  open(16);
  job_->join_all(1);
  job_->begin(0, 1, pattern(0, 1, 100));
  const Status status =
      job_->job().receive(JobHarness::connection(0), wire::Filled{1, {{9, 100, 0, 0}}});
  EXPECT_FALSE(status.ok());
}

TEST_F(JobTest, WhoComesAfterAFailedScanIsToldWhyToo) {
  JobHarness job(4, [] { return Result<std::unique_ptr<tier::Tier>>(Error(Code::io, "no tier")); });
  ASSERT_TRUE(job.join(0, 2).ok());
  job.run_until("refused", [&] { return job.has<wire::Failure>(0); });
  const Status second = job.join(1, 2);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message(), "no tier");
}

}  // namespace
}  // namespace backstay::agent::testing
