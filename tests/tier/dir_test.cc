// What a directory tier promises beyond the interface: what lies on the disk, and in which order.
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "aligned_bytes.h"
#include "around_memory.h"
#include "io/posix.h"
#include "temp_directory.h"
#include "version_store.h"

namespace backstay::testing {
namespace {

using Names = std::vector<std::string>;

Names names_in(io::FileSystem& fs, const std::string& path) {
  Names names;
  const auto entries = fs.list(path);
  if (!entries.ok()) return names;
  for (const auto& entry : *entries) names.push_back(entry.name);
  return names;
}

TEST(DirTier, OpeningWritesNothing) {
  io::MemoryFileSystem fs;
  auto tier = open_tier(fs, true);
  ASSERT_TRUE(is_ok(tier));
  EXPECT_TRUE((*tier)->list("")->empty());
  EXPECT_TRUE(names_in(fs, "/").empty());
}

TEST(DirTier, ANameIsAFile) {
  io::MemoryFileSystem fs;
  auto tier = open_tier(fs, false);
  ASSERT_TRUE(is_ok(commit_version(**tier, 1)));
  EXPECT_EQ(names_in(fs, "/tier/job/v1"), (Names{"commit.local", "manifest", "seg"}));
}

TEST(DirTier, LeftoversOfACrashAreNotListedButRemoved) {
  io::MemoryFileSystem fs;
  auto tier = open_tier(fs, false);
  ASSERT_TRUE(is_ok((*tier)->put("job/v1/seg", {})));
  ASSERT_TRUE(is_ok(fs.open("/tier/job/v1/commit.local.tmp", io::Open::create)));
  EXPECT_EQ(*(*tier)->list("job/v1"), Names{"seg"});
  ASSERT_TRUE(is_ok((*tier)->remove("job/v1")));
  EXPECT_TRUE(names_in(fs, "/tier/job").empty());
}

TEST(DirTier, AnEmptyFolderIsTakenAwayAndNothingElse) {
  io::MemoryFileSystem fs;
  auto tier = open_tier(fs, false);
  ASSERT_TRUE(is_ok((*tier)->put("job/v1/seg", {})));
  ASSERT_TRUE(is_ok((*tier)->remove_if_empty("job/v1")));
  EXPECT_EQ(names_in(fs, "/tier/job/v1"), Names{"seg"});
  ASSERT_TRUE(is_ok((*tier)->remove_if_empty("job/v1/seg")));
  EXPECT_EQ(names_in(fs, "/tier/job/v1"), Names{"seg"});
  ASSERT_TRUE(is_ok((*tier)->remove("job/v1/seg")));
  ASSERT_TRUE(is_ok((*tier)->remove_if_empty("job/v1")));
  EXPECT_TRUE(names_in(fs, "/tier/job").empty());
  EXPECT_TRUE(is_ok((*tier)->remove_if_empty("job/v1")));
}

// Two tiers of one folder: the other one takes it away when it is still empty, or was used before
// this one came to it.
TEST(DirTier, AFolderThatGoesWhileANameIsMadeInItIsMadeAgain) {
  class Goes final : public AroundMemory {
   public:
    Result<std::unique_ptr<io::File>> open(const std::string& path, io::Open how) override {
      if (std::exchange(goes, false)) {
        EXPECT_TRUE(is_ok(inner.remove("/tier/job/v1")));
      }
      return inner.open(path, how);
    }
    Status remove(const std::string& path) override {
      if (std::exchange(comes, false)) {
        EXPECT_TRUE(is_ok(inner.open(path + "/seg", io::Open::create)));
      }
      return inner.remove(path);
    }
    bool goes = true;
    bool comes = false;
  };
  Goes fs;
  auto tier = open_tier(fs, false);
  ASSERT_TRUE(is_ok((*tier)->create("job/v1/seg", 4096)));
  EXPECT_EQ(names_in(fs, "/tier/job/v1"), Names{"seg"});
  ASSERT_TRUE(is_ok((*tier)->remove("job/v1/seg")));
  fs.comes = true;
  EXPECT_TRUE(is_ok((*tier)->remove_if_empty("job/v1")));
  EXPECT_EQ(names_in(fs, "/tier/job/v1"), Names{"seg"});
}

// Refuses everything after its first request, for good, as io_uring may.
class ShortLivedRing final : public io::Ring {
 public:
  unsigned depth() const override { return inner_->depth(); }
  unsigned in_flight() const override { return inner_->in_flight() + broken_; }
  void write(io::File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) override {
    if (!std::exchange(used_, true)) return inner_->write(file, offset, from, tag);
    broken_ = 1;
    tag_ = tag;
  }
  void read(io::File& file, std::uint64_t offset, std::span<std::byte> to,
            std::uint64_t tag) override {
    inner_->read(file, offset, to, tag);
  }
  std::vector<io::Completion> reap(bool wait) override {
    if (std::exchange(broken_, 0) == 0) return inner_->reap(wait);
    gone_ = true;
    return {{tag_, Error(Code::io, "the ring is broken")}};
  }
  bool broken() const override { return gone_; }

 private:
  std::unique_ptr<io::Ring> inner_ = io::make_memory_ring();
  bool used_ = false;
  bool gone_ = false;
  unsigned broken_ = 0;
  std::uint64_t tag_ = 0;
};

TEST(DirTier, ABrokenRingIsNotLentAgain) {
  io::MemoryFileSystem fs;
  int made = 0;
  auto tier =
      tier::open_dir_tier(fs,
                          [&]() -> Result<std::unique_ptr<io::Ring>> {
                            ++made;
                            return std::unique_ptr<io::Ring>(std::make_unique<ShortLivedRing>());
                          },
                          {.root = "/tier"});
  ASSERT_TRUE(is_ok(tier));
  AlignedBytes bytes(4096);
  for (const bool good : {true, false, true}) {
    auto writer = (*tier)->create("job/v1/seg", 4096);
    ASSERT_TRUE(is_ok(writer));
    (*writer)->write(0, bytes.all(), 1);
    EXPECT_EQ((*writer)->reap(true).at(0).status.ok(), good);
  }
  EXPECT_EQ(made, 2);
}

// Two agents that do not know of each other write the same name: it is whole all the time,
// whichever seals last.
TEST(DirTier, SeveralWritersOfOneName) {
  io::MemoryFileSystem fs;
  const auto make_ring = []() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring();
  };
  auto one = std::move(tier::open_dir_tier(fs, make_ring, {.root = "/t", .writer = "a"}).value());
  auto two = std::move(tier::open_dir_tier(fs, make_ring, {.root = "/t", .writer = "b"}).value());
  AlignedBytes bytes(4096);
  const auto begin = [&](tier::Tier& tier) {
    auto writer = std::move(tier.create("job/v1/seg", 8192).value());
    writer->write(0, bytes.all(), 1);
    EXPECT_TRUE(writer->reap(true).at(0).status.ok());
    return writer;
  };
  const auto is_whole = [&] {
    const auto found = io::read_file(fs, "/t/job/v1/seg", 1 << 20);
    return found.ok() && found->size() == 4096;
  };
  auto first = begin(*one);
  EXPECT_TRUE(one->list("job/v1")->empty()) << "not before it is sealed";
  ASSERT_TRUE(is_ok(first->seal(4096)));
  EXPECT_TRUE(is_whole());
  auto second = begin(*two), third = begin(*one);
  EXPECT_TRUE(is_whole());
  second.reset();  // given up
  EXPECT_TRUE(is_whole());
  ASSERT_TRUE(is_ok(third->seal(4096)));
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(fs.list("/t/job/v1")->size(), 1u) << "nothing else is left";
  auto late = begin(*two);
  ASSERT_TRUE(is_ok(one->remove("job/v1")));
  EXPECT_FALSE(late->seal(4096).ok());
  late.reset();
  EXPECT_TRUE(one->list("job/v1")->empty());
}

TEST(DirTier, TheRootMayBeSpelledInAnyWay) {
  io::MemoryFileSystem fs;
  const auto make_ring = []() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring();
  };
  for (const std::string root : {"/a/b///", "c/d", "/", "e"}) {
    auto tier = tier::open_dir_tier(fs, make_ring, {.root = root});
    ASSERT_TRUE(is_ok(tier));
    ASSERT_TRUE(is_ok((*tier)->put("x/y", pattern(3, 1)))) << root;
    EXPECT_TRUE(is_ok((*tier)->get("x/y", 3))) << root;
  }
  EXPECT_TRUE(is_ok(io::read_file(fs, "/a/b/x/y", 3)));
  EXPECT_TRUE(fails_with(tier::open_dir_tier(fs, make_ring, {.root = ""}), Code::invalid));
}

TEST(DirTier, AFailedWriteFailsTheSeal) {
  io::MemoryFileSystem fs({.capacity_bytes = 20'000});
  auto tier = open_tier(fs, false);
  auto writer = (*tier)->create("seg", 0);
  ASSERT_TRUE(is_ok(writer));
  AlignedBytes bytes(32'768);
  (*writer)->write(0, bytes.all(), 1);
  EXPECT_TRUE(fails_with((*writer)->reap(true).at(0).status, Code::no_space));
  EXPECT_TRUE(fails_with((*writer)->seal(4096), Code::no_space));
}

TEST(DirTier, CreateFailsCleanlyOnAFullDisk) {
  io::MemoryFileSystem fs({.capacity_bytes = 10'000});
  auto tier = open_tier(fs, true);
  EXPECT_TRUE(fails_with((*tier)->create("job/v1/seg", 16'384), Code::no_space));
  EXPECT_EQ(fs.used_bytes(), 0u);
  EXPECT_TRUE((*tier)->list("job/v1")->empty());
  EXPECT_TRUE(fails_with((*tier)->put("job/v1/m", pattern(16'384, 1)), Code::no_space));
  EXPECT_EQ(fs.used_bytes(), 0u);
  EXPECT_TRUE(is_ok((*tier)->put("job/v1/m", pattern(9'000, 1))));
}

TEST(DirTier, AStopgapIsUsedOnce) {
  io::MemoryFileSystem fs;
  int made = 0;
  const auto make_ring = [&made]() -> Result<std::unique_ptr<io::Ring>> {
    auto ring = io::make_memory_ring();
    if (++made <= 2) ring->make_stopgap();
    return ring;
  };
  auto tier = tier::open_dir_tier(fs, make_ring, {.root = "/tier"});
  ASSERT_TRUE(is_ok(tier));
  for (std::uint64_t version = 1; version < 5; ++version) {
    ASSERT_TRUE(is_ok(write_segment(**tier, version)));
  }
  EXPECT_EQ(made, 3);
}

TEST(DirTier, ARingIsMadeOnceAndUsedAgain) {
  io::MemoryFileSystem fs;
  int made = 0;
  const auto make_ring = [&made]() -> Result<std::unique_ptr<io::Ring>> {
    ++made;
    return io::make_memory_ring();
  };
  auto tier = tier::open_dir_tier(fs, make_ring, {.root = "/tier"});
  ASSERT_TRUE(is_ok(tier));
  ASSERT_TRUE((*tier)->list("")->empty());
  EXPECT_EQ(made, 0) << "opening and looking must not wait for a ring";
  ASSERT_TRUE(is_ok((*tier)->prepare()));
  EXPECT_EQ(made, 1);
  for (std::uint64_t version = 1; version < 5; ++version) {
    ASSERT_TRUE(is_ok(write_segment(**tier, version)));
    ASSERT_TRUE(is_ok((*tier)->open(folder_of(version) + "/seg")));
  }
  EXPECT_EQ(made, 1);
  auto a = (*tier)->open("job/v1/seg");
  auto b = (*tier)->open("job/v2/seg");
  EXPECT_EQ(made, 2);
}

TEST(DirTier, WithoutARingThereAreSmallObjectsOnly) {
  io::MemoryFileSystem fs;
  const auto none = []() -> Result<std::unique_ptr<io::Ring>> {
    return Error(Code::io, "no threads");
  };
  auto tier = tier::open_dir_tier(fs, none, {.root = "/tier"});
  ASSERT_TRUE(is_ok(tier));
  EXPECT_TRUE(fails_with((*tier)->prepare(), Code::io));
  EXPECT_TRUE(is_ok((*tier)->put("job/x", pattern(10, 1))));
  EXPECT_TRUE(fails_with((*tier)->open("job/x"), Code::io));
  EXPECT_TRUE(fails_with((*tier)->create("job/y", 4096), Code::io));
  EXPECT_EQ((*tier)->list("job")->size(), 1u) << "a failed create left something";
}

TEST(DirTier, FoldersAboveTheRootThatNobodyMayOpenAreFine) {
  class Closed final : public AroundMemory {
   public:
    Status sync_directory(const std::string& path) override {
      return path == closed ? errno_error("open " + path, EACCES) : inner.sync_directory(path);
    }
    std::string closed = "/";
  } fs;
  auto tier = open_tier(fs, false);
  EXPECT_TRUE(fails_with((*tier)->put("a/b", {}), Code::permission)) << "it made /tier itself";
  fs.closed = "";
  EXPECT_TRUE(is_ok((*tier)->put("a/b", {})));
  fs.closed = "/";
  auto later = open_tier(fs, false);
  EXPECT_TRUE(is_ok((*later)->put("a/b", {}))) << "/tier was there";
  fs.closed = "/tier";
  auto other = open_tier(fs, false);
  EXPECT_TRUE(fails_with((*other)->put("a/b", {}), Code::permission))
      << "its own root must be safe";
}

TEST(DirTier, ARootThatCannotBeMadeIsNamed) {
  TempDirectory directory;
  ASSERT_TRUE(is_ok(io::publish_file(io::posix_filesystem(), directory.path() + "/file", {})));
  const auto make_ring = [] { return io::make_ring({.allow_io_uring = false}, nullptr); };
  auto tier = tier::open_dir_tier(io::posix_filesystem(), make_ring,
                                  {.root = directory.path() + "/file/tier"});
  ASSERT_TRUE(is_ok(tier));
  const Status put = (*tier)->put("a", {});
  ASSERT_FALSE(put.ok());
  EXPECT_NE(put.error().message().find("/file"), std::string::npos) << put.error().message();
}

// A foreign link among the versions, and one inside of a version: the files that they name are not
// ours.
TEST(DirTier, OfALinkOnlyTheLinkIsRemoved) {
  TempDirectory directory, others;
  io::FileSystem& fs = io::posix_filesystem();
  ASSERT_TRUE(is_ok(fs.make_directories(others.path() + "/folder")));
  ASSERT_TRUE(is_ok(io::publish_file(fs, others.path() + "/folder/precious", {})));
  ASSERT_TRUE(is_ok(io::publish_file(fs, others.path() + "/commit.local", {})));
  auto tier = tier::open_dir_tier(fs, [] { return io::make_ring({.depth = 1}, nullptr); },
                                  {.root = directory.path()});
  ASSERT_TRUE(is_ok(tier));
  ASSERT_TRUE(is_ok((*tier)->put("job/v1/seg", {})));
  const std::string job = directory.path() + "/job";
  ASSERT_EQ(::symlink(others.path().c_str(), (job + "/v1/inside").c_str()), 0);
  ASSERT_EQ(::symlink(others.path().c_str(), (job + "/v2").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (job + "/v3").c_str()), 0);
  for (const std::string version : {"job/v1", "job/v2", "job/v3"}) {
    EXPECT_TRUE(is_ok((*tier)->remove(version)));
  }
  EXPECT_TRUE(names_in(fs, job).empty());
  EXPECT_EQ(names_in(fs, others.path()), (Names{"commit.local", "folder"}));
  EXPECT_EQ(names_in(fs, others.path() + "/folder"), Names{"precious"});
}

TEST(DirTier, TellsWhetherSegmentsGoAroundThePageCache) {
  for (const bool direct : {true, false}) {
    TempDirectory directory;
    const auto fs = io::make_posix_filesystem({.direct = direct});
    const auto direct_here =
        (*fs->open(directory.path() + "/probe", io::Open::create_direct))->direct();
    std::vector<bool> told;
    auto tier = tier::open_dir_tier(
        *fs, [] { return io::make_ring({.depth = 1}, nullptr); },
        {.root = directory.path(), .tell_direct = [&](bool is) { told.push_back(is); }});
    ASSERT_TRUE(is_ok(tier));
    ASSERT_TRUE(is_ok(write_segment(**tier, 1)));
    EXPECT_EQ(told, std::vector<bool>{direct_here});
  }
}

}  // namespace
}  // namespace backstay::testing
