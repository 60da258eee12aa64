#include "agent/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "format/names.h"
#include "format/segment.h"
#include "harness.h"
#include "io/posix.h"
#include "refusing_tier.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

namespace fs = std::filesystem;
constexpr std::uint32_t buffer_bytes = JobHarness::buffer_bytes;

std::vector<std::byte> pattern(Rank rank, VersionNumber version, std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t at = 0; at < size; ++at) {
    data[at] = static_cast<std::byte>((at * 31 + rank * 7 + version * 101 + at / 4096) & 0xff);
  }
  return data;
}

class JobTest : public ::testing::Test {
 public:
  JobTest() {
    std::string name = ::testing::TempDir() + "backstay-job-XXXXXX";
    dir_ = ::mkdtemp(name.data());
  }
  ~JobTest() override {
    job_.reset();  // its store still writes
    fs::remove_all(dir_);
  }

 protected:
  bool writing_fails() { return job_->job().state().versions.last_not_written().has_value(); }
  // Another agent on the same disk: what a crash of the first one leaves.
  void open(std::uint32_t buffers) {
    job_.reset();
    job_ = std::make_unique<JobHarness>(buffers, [this]() -> Result<std::unique_ptr<tier::Tier>> {
      tier::DirOptions options;
      options.root = dir_;
      BACKSTAY_ASSIGN(auto inner,
                      tier::open_dir_tier(
                          io::posix_filesystem(),
                          [] { return io::make_ring(io::RingOptions{}, nullptr); }, options));
      return std::unique_ptr<tier::Tier>(new RefusingTier(std::move(inner), trouble_));
    });
  }
  wire::Captured save(std::uint32_t ranks, VersionNumber version, std::size_t size) {
    return job_->capture(ranks, version, [&](Rank rank) { return pattern(rank, version, size); });
  }
  std::string path(VersionNumber version, const std::string& file) const {
    return dir_ + "/" + format::version_folder("job", version) + "/" + file;
  }
  void flip_byte(const std::string& file, std::uint64_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(stream.good()) << file;
    stream.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(byte);
  }
  void expect_back(const JobHarness::Back& back, std::uint32_t ranks, VersionNumber version,
                   std::size_t size) {
    ASSERT_EQ(back.code, Code::ok) << back.message;
    EXPECT_EQ(back.version, version);
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(back.data.at(rank) == pattern(rank, version, size)) << "rank " << rank;
    }
  }

  std::string dir_;
  std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
  std::unique_ptr<JobHarness> job_;
};

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

TEST_F(JobTest, ADamagedChunkSetsTheVersionAsideForAllRanks) {
  const std::size_t size = 2 * buffer_bytes;
  open(64);
  job_->join_all(2);
  for (VersionNumber version = 1; version <= 2; ++version) {
    ASSERT_EQ(save(2, version, size).code, Code::ok);
    job_->wait_local(version);
  }
  open(64);
  flip_byte(path(2, "node-0000000.segment"), format::segment_header_bytes + buffer_bytes + 17);
  job_->join_all(2, 8);
  expect_back(job_->restart(2), 2, 1, size);
  EXPECT_TRUE(fs::exists(path(2, "damaged")));
  EXPECT_EQ(job_->job().level_of(2).code, Code::corrupt);
  // The next agent knows without reading it again, and never uses its number again.
  open(64);
  job_->join_all(2, 9);
  EXPECT_EQ(job_->welcome().newest, 2u);
  expect_back(job_->restart(2), 2, 1, size);
}

TEST_F(JobTest, ADamagedManifestOrCommitRecordIsNeverTakenAsGood) {
  open(64);
  job_->join_all(1);
  for (VersionNumber version = 1; version <= 2; ++version) {
    ASSERT_EQ(save(1, version, 100).code, Code::ok);
    job_->wait_local(version);
  }
  flip_byte(path(2, "node-0000000.manifest"), 70);
  open(64);
  job_->join_all(1, 8);
  expect_back(job_->restart(1), 1, 1, 100);
  flip_byte(path(1, "commit.local"), 20);
  open(64);
  job_->join_all(1, 9);
  const auto back = job_->restart(1);
  EXPECT_EQ(back.code, Code::corrupt);
  EXPECT_THAT(back.message, ::testing::HasSubstr("backstay verify"));
}

// Two versions on the disk, and an agent that has neither in its pool.
class ReadErrors : public JobTest {
 protected:
  static constexpr std::size_t size = 2 * buffer_bytes;
  ReadErrors() {
    open(64);
    job_->join_all(2);
    for (VersionNumber version = 1; version <= 2; ++version) {
      EXPECT_EQ(save(2, version, size).code, Code::ok);
      job_->wait_local(version);
    }
  }
  void restart_gives(VersionNumber version) {
    job_->join_all(2, 8);
    expect_back(job_->restart(2), 2, version, size);
    EXPECT_FALSE(fs::exists(path(2, "damaged")));
  }
};

TEST_F(ReadErrors, OfACommitRecordPass) {
  trouble_->ending = "2/commit.local";
  trouble_->failing_gets = 1;
  open(64);
  restart_gives(2);
}

TEST_F(ReadErrors, OfAManifestPass) {
  trouble_->ending = "manifest";
  trouble_->failing_gets = 1;
  open(64);
  restart_gives(2);
}

TEST_F(ReadErrors, OfASegmentPass) {
  trouble_->failing_opens = 1;
  open(64);
  restart_gives(2);
}

TEST_F(ReadErrors, OfAChecksumPass) {
  open(64);
  job_->corrupt_next_chunk_of(1);
  restart_gives(2);
}

TEST_F(ReadErrors, ThatStaySkipTheVersionForThisRestartOnly) {
  open(64);
  trouble_->failing_opens = 2 * 4;  // all chunks, twice
  restart_gives(1);
  EXPECT_EQ(job_->job().level_of(2).level, Level::local);
  expect_back(job_->restart(2), 2, 2, size);
}

TEST_F(ReadErrors, AreNoDamageEvenIfAChecksumFailedBefore) {
  open(64);
  job_->corrupt_next_chunk_of(0);
  job_->join_all(2, 8);
  job_->hold_chunks(true);
  trouble_->ending = "manifest";
  job_->run_until("scanned", [&] { return job_->job().level_of(2).level == Level::local; });
  job_->after_step = [&] {
    if (!job_->holds_chunks()) return;
    trouble_->failing_gets = 1;  // the manifest, when it is loaded for the second time
    job_->after_step = nullptr;
    job_->hold_chunks(false);
  };
  expect_back(job_->restart(2), 2, 1, size);
  EXPECT_FALSE(fs::exists(path(2, "damaged")));
}

TEST_F(ReadErrors, NeverMakeRetentionRemoveWhatCouldBeRead) {
  open(64);
  trouble_->failing_opens = 2 * 4;
  restart_gives(1);
  ASSERT_EQ(save(2, 3, size).code, Code::ok);  // keep = 2: this one and another that is good
  job_->wait_local(3);
  job_->start_fetch(0, 1);  // the store answers it after it has removed what expired
  EXPECT_EQ(job_->fetched(0).code, Code::ok);
  ASSERT_EQ(save(2, 4, size).code, Code::ok);
  job_->wait_local(4);
  job_->run_until("removed", [&] { return !fs::exists(path(1, "node-0000000.segment")); });
  EXPECT_FALSE(fs::exists(path(2, "commit.local")));
  EXPECT_TRUE(fs::exists(path(3, "commit.local")));
}

TEST_F(JobTest, DamageInThePoolFallsBackToTheDisk) {
  const std::size_t size = 2 * buffer_bytes;
  open(64);
  job_->join_all(2);
  ASSERT_EQ(save(2, 1, size).code, Code::ok);
  job_->wait_local(1);
  job_->corrupt_next_chunk_of(1);
  const auto back = job_->restart(2);
  expect_back(back, 2, 1, size);
  EXPECT_FALSE(back.from_pool);
  EXPECT_FALSE(fs::exists(path(1, "damaged")));
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

TEST_F(JobTest, AMarkOfDamageWithoutACommitRecordIsGarbage) {
  fs::create_directories(dir_ + "/" + format::version_folder("job", 4));
  std::ofstream(path(4, "damaged")) << "backstay verify: it was there once\n";
  open(8);
  job_->join_all(1);
  EXPECT_EQ(job_->welcome().newest, 4u);  // its number is not used again
  EXPECT_EQ(job_->restart(1).code, Code::none);
  EXPECT_FALSE(fs::exists(path(4, "damaged")));
}

}  // namespace
}  // namespace backstay::agent::testing
