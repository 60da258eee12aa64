// A rank keeps chunks of an older version: who may be one, and how it comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/version/retention.h"
#include "format/names.h"
#include "harness.h"
#include "io/posix.h"
#include "refusing_tier.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
constexpr std::uint32_t chunk = JobHarness::buffer_bytes;

using Data = std::vector<std::byte>;

Data pattern(VersionNumber version, std::size_t size) {
  Data data(size);
  for (std::size_t at = 0; at < size; ++at) {
    data[at] = static_cast<std::byte>((at * 31 + version * 101 + at / 4096) & 0xff);
  }
  return data;
}

// Chunks `first` to `last` of one object, then all of another one.
Data joined(const Data& kept, std::size_t first, std::size_t last, const Data& rest) {
  Data data(kept.begin() + static_cast<std::ptrdiff_t>(first * chunk),
            kept.begin() + static_cast<std::ptrdiff_t>(last * chunk));
  data.insert(data.end(), rest.begin(), rest.end());
  return data;
}

wire::Kept chunks_of(VersionNumber version, VersionNumber base, std::size_t first,
                     std::size_t last) {
  wire::Kept kept{version, base, chunk, {}};
  for (std::size_t at = first; at < last; ++at) kept.chunks.push_back({at * chunk, chunk});
  return kept;
}

class KeptTest : public ::testing::Test {
 public:
  KeptTest() {
    std::string name = ::testing::TempDir() + "backstay-kept-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    open(7);
    first_ = pattern(1, 3 * chunk + 100);
    EXPECT_EQ(job_->capture(1, 1, [&](Rank) { return first_; }).code, Code::ok);
    job_->wait_local(1);
  }
  ~KeptTest() override {
    job_.reset();  // its store still writes
    fs::remove_all(dir_);
  }

 protected:
  // Another agent on the same disk, and another run.
  void open(RunId run, std::uint32_t ranks = 1) {
    job_.reset();
    job_ = std::make_unique<JobHarness>(64, [this]() -> Result<std::unique_ptr<tier::Tier>> {
      tier::DirOptions options;
      options.root = dir_;
      BACKSTAY_ASSIGN(auto disk,
                      tier::open_dir_tier(
                          io::posix_filesystem(),
                          [] { return io::make_ring(io::RingOptions{}, nullptr); }, options));
      return std::unique_ptr<tier::Tier>(std::make_unique<RefusingTier>(std::move(disk), trouble_));
    });
    job_->versions_kept = 1;
    job_->join_all(ranks, run);
  }
  wire::Captured keep(const wire::Kept& kept, const Data& data) {
    job_->receive(0, kept);
    job_->begin(0, kept.version, data, kept.chunks.size() * chunk);
    job_->run_until("all sent", [&] { return job_->sent_all(0) || has_answer(); });
    if (!has_answer()) job_->end(0);
    return job_->captured(1);
  }
  bool has_answer() { return job_->has<wire::Captured>(0); }
  void expect_back(VersionNumber version, const Data& data) {
    const auto back = job_->restart(1);
    ASSERT_EQ(back.code, Code::ok) << back.message;
    EXPECT_EQ(back.version, version);
    EXPECT_TRUE(back.data.at(0) == data);
  }
  std::string segment(VersionNumber version) const {
    return dir_ + "/" + format::segment_name(format::version_folder("job", version), 0);
  }

  std::string dir_;
  const std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
  Data first_;
  std::unique_ptr<JobHarness> job_;
};

// Version 3 keeps a chunk that version 2 has of version 1, and one of version 2 itself.
TEST_F(KeptTest, AChainComesBackAlsoToAnotherAgent) {
  const Data second = joined(first_, 1, 3, pattern(2, chunk + 50));
  ASSERT_EQ(keep(chunks_of(2, 1, 1, 3), second).code, Code::ok);
  const Data third = joined(second, 1, 3, pattern(3, 70));
  ASSERT_EQ(keep(chunks_of(3, 2, 1, 3), third).code, Code::ok);
  EXPECT_EQ(fs::file_size(segment(3)), 2 * 4096u) << "its header and the end of the object";
  expect_back(3, third);
  open(8);
  expect_back(3, third);
  EXPECT_THAT(expired(job_->job().state().versions, 1), ::testing::IsEmpty()) << "3 needs them";
}

TEST_F(KeptTest, ItIsCapturedOnceItIsLocal) {
  const Data second = joined(first_, 0, 1, pattern(2, 50));
  ASSERT_EQ(keep(chunks_of(2, 1, 0, 1), second).code, Code::ok);
  EXPECT_EQ(job_->job().level_of(2).level, Level::local) << "the pool does not hold all of it";
}

// The pool does not hold all of it, and what it has of it cannot be written.
TEST_F(KeptTest, AVersionThatFailedBeforeARankKeptChunksOfABaseIsGivenUp) {
  open(8, 2);
  ASSERT_EQ(job_->capture(2, 2, [&](Rank) { return first_; }).code, Code::ok);
  job_->wait_local(2);
  trouble_->full = true;
  job_->begin(0, 3, pattern(3, 50));
  job_->run_until("failed", [&] { return job_->job().state().memory.at(3).failed.has_value(); });
  const wire::Kept kept = chunks_of(3, 2, 0, 1);
  job_->receive(1, kept);
  job_->begin(1, 3, joined(first_, 0, 1, pattern(3, 50)), chunk);
  job_->run_until("all sent", [&] { return job_->sent_all(0) && job_->sent_all(1); });
  job_->end(0);
  job_->end(1);
  const wire::Captured answer = job_->captured(2);
  EXPECT_EQ(answer.code, Code::no_space);
  EXPECT_THAT(answer.message, HasSubstr("the disk is full"));
}

TEST_F(KeptTest, OfARunsVersionsTheOneThatThisAgentWroteLastMayBeABase) {
  ASSERT_EQ(job_->capture(1, 2, [&](Rank) { return pattern(2, chunk + 9); }).code, Code::ok);
  job_->wait_local(2);
  const wire::Captured older = keep(chunks_of(3, 1, 0, 1), joined(first_, 0, 1, pattern(3, 50)));
  EXPECT_EQ(older.code, Code::again);
  EXPECT_THAT(older.message, HasSubstr("nothing of version 1 can be kept"));
  open(8);
  const Data data = joined(pattern(2, chunk + 9), 0, 1, pattern(4, 50));
  EXPECT_EQ(keep(chunks_of(4, 2, 0, 1), data).code, Code::again) << "of another agent";
  (void)job_->take<wire::Captured>(0);  // the answer to `begin`, which came after it
  EXPECT_EQ(job_->capture(1, 5, [&](Rank) { return data; }).code, Code::ok);
  expect_back(5, data);
}

TEST_F(KeptTest, WhatARunOfOneNodeWentOnFromMayBeABase) {
  open(8);
  expect_back(1, first_);
  const Data second = joined(first_, 0, 2, pattern(2, 50));
  ASSERT_EQ(keep(chunks_of(2, 1, 0, 2), second).code, Code::ok);
  open(9);
  expect_back(2, second);
  EXPECT_THAT(expired(job_->job().state().versions, 1), ::testing::IsEmpty()) << "2 needs it";
}

TEST_F(KeptTest, WhatTheBaseDoesNotHaveEndsTheConnectionAndNotTheAgent) {
  job_->job();
  const auto refused = [&](const wire::Kept& kept) {
    return !job_->job().receive(JobHarness::connection(0), wire::Message(kept)).ok();
  };
  EXPECT_TRUE(refused({2, 1, 50, {{4096, chunk}}})) << "no chunk begins there";
  EXPECT_TRUE(refused({2, 1, 50, {{0, chunk - 4096}}})) << "a part of one";
  EXPECT_TRUE(refused({2, 1, 50, {{3 * chunk, 100}}})) << "the last one is no whole pages";
}

TEST_F(KeptTest, DamageOfABaseIsDamageOfWhatNeedsIt) {
  const Data second = joined(first_, 1, 3, pattern(2, 2 * chunk));
  ASSERT_EQ(keep(chunks_of(2, 1, 1, 3), second).code, Code::ok);
  ASSERT_EQ(keep(chunks_of(3, 2, 2, 4), joined(second, 2, 4, pattern(3, 50))).code, Code::ok);
  std::fstream file(segment(2), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 + 64).put('x');
  file.close();
  open(8);
  expect_back(1, first_);
}

}  // namespace
}  // namespace backstay::agent::testing
