// Recycling: which files become spares, which spares are used, and when they go.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "around_memory.h"
#include "io/posix.h"
#include "temp_directory.h"
#include "version_store.h"

namespace backstay::testing {
namespace {

std::size_t spares(io::FileSystem& fs) {
  const auto entries = fs.list("/tier/.spare");
  return entries.ok() ? entries->size() : 0;
}

TEST(Recycle, ARemovedSegmentBecomesTheNextOne) {
  TempDirectory directory;
  const auto make_ring = [] { return io::make_ring({.depth = 4}, nullptr); };
  auto tier =
      tier::open_dir_tier(io::posix_filesystem(), make_ring,
                          {.root = directory.path(), .recycle = true, .spare_bytes_min = 4096});
  const auto inode = [&](std::uint64_t version) {
    struct stat facts {};
    EXPECT_EQ(::stat((directory.path() + "/" + folder_of(version) + "/seg").c_str(), &facts), 0);
    return facts.st_ino;
  };
  ASSERT_TRUE(is_ok(commit_version(**tier, 1)));
  const auto first = inode(1);
  ASSERT_TRUE(is_ok((*tier)->remove(folder_of(1))));
  ASSERT_TRUE(is_ok(commit_version(**tier, 2)));
  EXPECT_EQ(inode(2), first);
  std::string why;
  EXPECT_TRUE(is_committed(**tier, 2, &why));
  EXPECT_EQ(why, "");
}

class RecycleInMemory : public ::testing::Test {
 protected:
  explicit RecycleInMemory(std::uint64_t capacity = ~std::uint64_t{0})
      : fs_({.capacity_bytes = capacity}), tier_(open_tier(fs_, true).value()) {}
  io::MemoryFileSystem fs_;
  std::unique_ptr<tier::Tier> tier_;
};

TEST_F(RecycleInMemory, OnlyLargeFilesAndOnlyOneIsKept) {
  for (std::uint64_t version = 1; version <= 4; ++version) {
    ASSERT_TRUE(is_ok(commit_version(*tier_, version)));
  }
  for (std::uint64_t version = 1; version <= 4; ++version) {
    ASSERT_TRUE(is_ok(tier_->remove(folder_of(version))));
  }
  EXPECT_EQ(spares(fs_), 1u);
  EXPECT_EQ(fs_.used_bytes(), segment_bytes);
  EXPECT_TRUE(tier_->list("")->size() == 1 && tier_->list("")->front() == "job");
}

TEST_F(RecycleInMemory, OffKeepsNothing) {
  tier_ = open_tier(fs_, false).value();
  ASSERT_TRUE(is_ok(commit_version(*tier_, 1)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(1))));
  EXPECT_EQ(fs_.used_bytes(), 0u);
}

TEST_F(RecycleInMemory, ASpareOfAnotherSizeIsNotUsed) {
  ASSERT_TRUE(is_ok(commit_version(*tier_, 1)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(1))));
  ASSERT_TRUE(is_ok(tier_->create("job/v2/small", 4096)));
  ASSERT_TRUE(is_ok(tier_->create("job/v2/large", 10 * segment_bytes)));
  ASSERT_TRUE(is_ok(tier_->create("job/v2/unknown", 0)));
  EXPECT_EQ(spares(fs_), 1u);
  ASSERT_TRUE(is_ok(tier_->create("job/v2/same", segment_bytes)));
  EXPECT_EQ(spares(fs_), 0u);
}

TEST_F(RecycleInMemory, SparesOfAnEarlierProcessAreDeleted) {
  ASSERT_TRUE(is_ok(commit_version(*tier_, 1)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(1))));
  ASSERT_EQ(spares(fs_), 1u);
  auto reader = open_tier(fs_, false);
  EXPECT_EQ(spares(fs_), 1u) << "who does not recycle leaves them alone";
  auto next = open_tier(fs_, true);
  EXPECT_EQ(spares(fs_), 0u);
  ASSERT_TRUE(is_ok(commit_version(*tier_, 2))) << "the first one does without";
  std::string why;
  EXPECT_TRUE(is_committed(*tier_, 2, &why));
  EXPECT_EQ(why, "");
}

TEST_F(RecycleInMemory, AFileThatIsReadIsNotKept) {
  ASSERT_TRUE(is_ok(commit_version(*tier_, 1)));
  {
    auto reader = tier_->open("job/v1/seg");
    ASSERT_TRUE(is_ok(tier_->remove(folder_of(1))));
  }
  EXPECT_EQ(fs_.used_bytes(), 0u);
  ASSERT_TRUE(is_ok(commit_version(*tier_, 1)));
  { auto reader = tier_->open("job/v1/seg"); }
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(1))));
  EXPECT_EQ(spares(fs_), 1u) << "a reader that is closed does not count";
}

// Another tier of the process: the copies to the durable directory have their own.
TEST_F(RecycleInMemory, AFileThatAnotherTierReadsIsNotKept) {
  const auto readers = std::make_shared<tier::OpenReaders>();
  auto recycles = open_tier(fs_, true, readers).value();
  auto reads = open_tier(fs_, false, readers).value();
  ASSERT_TRUE(is_ok(commit_version(*recycles, 1)));
  {
    auto reader = reads->open("job/v1/seg");
    ASSERT_TRUE(is_ok(recycles->remove(folder_of(1))));
    EXPECT_EQ(spares(fs_), 0u);
  }
  ASSERT_TRUE(is_ok(commit_version(*recycles, 1)));
  { auto reader = reads->open("job/v1/seg"); }
  ASSERT_TRUE(is_ok(recycles->remove(folder_of(1))));
  EXPECT_EQ(spares(fs_), 1u);
}

// A reader that opens the file between the look for readers and the move.
TEST(Recycle, AFileThatIsOpenedBeforeItIsMovedAwayIsNotKept) {
  class OpensBefore final : public AroundMemory {
   public:
    Status rename(const std::string& from, const std::string& to) override {
      if (from.ends_with("/v1/seg")) reader = reads->open("job/v1/seg").value();
      return inner.rename(from, to);
    }
    std::unique_ptr<tier::Tier> reads;
    std::unique_ptr<tier::Reader> reader;
  } fs;
  const auto readers = std::make_shared<tier::OpenReaders>();
  fs.reads = open_tier(fs, false, readers).value();
  auto recycles = open_tier(fs, true, readers).value();
  ASSERT_TRUE(is_ok(commit_version(*recycles, 1)));
  ASSERT_TRUE(is_ok(recycles->remove(folder_of(1))));
  ASSERT_NE(fs.reader, nullptr);
  EXPECT_EQ(spares(fs), 0u);
  EXPECT_FALSE(recycles->get("job/v1/seg", 1 << 20).ok());
}

// Its creator may still be writing it.
TEST_F(RecycleInMemory, AFileOfAnotherTierIsNotKept) {
  auto other = open_tier(fs_, false).value();
  ASSERT_TRUE(is_ok(commit_version(*other, 1)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(1))));
  EXPECT_EQ(spares(fs_), 0u);
  // Nor under a name that was ours before.
  ASSERT_TRUE(is_ok(commit_version(*tier_, 2)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(2) + "/seg")));
  ASSERT_TRUE(is_ok(commit_version(*other, 2)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(2))));
  EXPECT_EQ(spares(fs_), 0u);
}

TEST_F(RecycleInMemory, TheFolderWithTheSparesMayBeRemoved) {
  tier::DirOptions options;
  options.root = "/tier";
  options.recycle = true;
  options.spare_bytes_min = 4096;
  options.spare_folder = "job/.spare";
  auto tier = tier::open_dir_tier(
      fs_, []() -> Result<std::unique_ptr<io::Ring>> { return io::make_memory_ring(); }, options);
  ASSERT_TRUE(is_ok(commit_version(**tier, 1)));
  ASSERT_TRUE(is_ok(commit_version(**tier, 2)));
  ASSERT_TRUE(is_ok((*tier)->remove(folder_of(1))));
  EXPECT_EQ(fs_.list("/tier/job/.spare")->size(), 1u);
  ASSERT_TRUE(is_ok((*tier)->remove("job")));
  EXPECT_EQ(fs_.used_bytes(), 0u);
  ASSERT_TRUE(is_ok(commit_version(**tier, 3)));
}

class RecycleOnASmallDisk : public RecycleInMemory {
 protected:
  RecycleOnASmallDisk() : RecycleInMemory(3 * segment_bytes + 8192) {}
};

TEST_F(RecycleOnASmallDisk, SparesMakeRoomForWhatIsNeeded) {
  for (std::uint64_t version = 1; version <= 2; ++version) {
    ASSERT_TRUE(is_ok(commit_version(*tier_, version)));
    ASSERT_TRUE(is_ok(tier_->remove(folder_of(version))));
  }
  ASSERT_TRUE(is_ok(write_segment(*tier_, 3)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(3))));
  ASSERT_GE(spares(fs_), 1u);
  ASSERT_TRUE(is_ok(tier_->create("large", 3 * segment_bytes)));
  EXPECT_EQ(spares(fs_), 0u);
  ASSERT_TRUE(is_ok(tier_->remove("large")));

  ASSERT_TRUE(is_ok(commit_version(*tier_, 4)));
  ASSERT_TRUE(is_ok(tier_->remove(folder_of(4))));
  ASSERT_EQ(spares(fs_), 1u);
  ASSERT_TRUE(is_ok(tier_->put("much", Buffer(3 * segment_bytes))));
  EXPECT_EQ(spares(fs_), 0u);
}

}  // namespace
}  // namespace backstay::testing
