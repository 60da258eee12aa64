// Damage, and errors of reading: which version a job then brings back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "format/names.h"
#include "format/segment.h"
#include "job_fixture.h"

namespace backstay::agent::testing {
namespace {

namespace fs = std::filesystem;

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
  EXPECT_THAT(back.message, ::testing::AllOf(::testing::HasSubstr("version 2: manifest"),
                                             ::testing::HasSubstr("version 1: commit record")));
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
