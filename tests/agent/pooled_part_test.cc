// The pool answers reads of a version that it still has, byte for byte as the disk would.
#include "agent/version/pooled_part.h"

#include <gtest/gtest.h>

#include "conformance/temp_directory.h"
#include "harness.h"
#include "io/posix.h"
#include "support/seed.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

class PooledPartTest : public ::testing::Test {
 protected:
  PooledPartTest() {
    job_.join_all(2);
    EXPECT_EQ(job_.capture(2, 1, data).code, Code::ok);
    job_.wait_local(1);
    segment_ = open().value()->open(store::names_of("job", file_).data).value();
  }
  static std::vector<std::byte> data(Rank rank) {
    std::vector<std::byte> bytes(3 * JobHarness::buffer_bytes + 5000 + rank);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + rank);
    return bytes;
  }
  Result<std::unique_ptr<tier::Tier>> open() const {
    return tier::open_dir_tier(io::posix_filesystem(), [] { return io::make_thread_ring(8, 1); },
                               {.root = folder_.path()});
  }
  std::uint64_t segment_bytes() { return state().newest_part->segment_bytes; }
  const JobState& state() { return job_.job().state(); }

  Buffer on_disk(std::uint64_t offset, std::size_t bytes) {
    AlignedMemory memory(bytes);
    segment_->read(offset, memory.span(), 0);
    for (const auto& done : segment_->reap(true)) EXPECT_TRUE(done.status.ok());
    return {memory.span().begin(), memory.span().end()};
  }
  bool from_pool(std::uint64_t offset, std::span<std::byte> to) {
    const auto pooled = state().pooled(file_);
    return pooled != nullptr && pooled->read(offset, to);
  }

  const backstay::testing::TempDirectory folder_;
  JobHarness job_{32, [this] { return open(); }};
  const FileOf file_{1, 7, 0};
  std::unique_ptr<tier::Reader> segment_;
};

TEST_F(PooledPartTest, EveryPieceIsAsOnTheDisk) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  const std::uint64_t blocks = segment_bytes() / 4096;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t first = random.between(0, blocks - 1);
    const std::uint64_t count = random.between(1, std::min<std::uint64_t>(16, blocks - first));
    Buffer piece(count * 4096);
    ASSERT_TRUE(from_pool(first * 4096, piece));
    ASSERT_EQ(piece, on_disk(first * 4096, piece.size())) << first << " " << count;
  }
}

TEST_F(PooledPartTest, WhatThePoolHasNotIsAskedOfTheDisk) {
  Buffer piece(4096);
  const std::uint64_t end = segment_bytes();
  EXPECT_FALSE(from_pool(end, piece)) << "behind the end";
  Buffer two(8192);
  EXPECT_FALSE(from_pool(end - 4096, two)) << "over the end";
  EXPECT_EQ(state().pooled({1, 7, 1}), nullptr) << "another node's";
  EXPECT_EQ(state().pooled({1, 8, 0}), nullptr) << "of another run";
}

TEST_F(PooledPartTest, BuffersThatWentToANewerVersionAreNot) {
  Buffer piece(JobHarness::buffer_bytes);
  const auto noted = state().pooled(file_);
  EXPECT_TRUE(noted->read(4096, piece));
  for (VersionNumber version = 2; version < 6; ++version) {
    EXPECT_EQ(job_.capture(2, version, data).code, Code::ok);
    job_.wait_local(version);
  }
  EXPECT_FALSE(from_pool(4096, piece));
  EXPECT_FALSE(noted->read(4096, piece)) << "by who has noted it before";
}

}  // namespace
}  // namespace backstay::agent::testing
