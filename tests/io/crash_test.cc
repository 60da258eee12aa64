// The crash model does what memory.h says: it loses nothing that was synced, and everything else
// in every way that it names.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "io/faulty.h"
#include "io/memory.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

constexpr std::uint64_t seed_count = 200;

void write(FileSystem& fs, const std::string& path, Bytes bytes, bool sync) {
  auto file = fs.open(path, Open::create);
  ASSERT_TRUE(is_ok(file));
  ASSERT_TRUE(is_ok((*file)->write_at(0, bytes)));
  if (!sync) return;
  ASSERT_TRUE(is_ok((*file)->sync()));
}

// "missing", "old", "new", "torn", ...: how a file looks.
std::string look(FileSystem& fs, const std::string& path, std::size_t size) {
  const auto bytes = read_file(fs, path, 1 << 20);
  if (!bytes.ok()) return bytes.error().code() == Code::not_found ? "missing" : "unreadable";
  if (*bytes == pattern(size, 1)) return "old";
  if (*bytes == pattern(size, 2)) return "new";
  if (bytes->size() < size) return bytes->empty() ? "empty" : "short";
  if (*bytes == Buffer(size)) return "zeros";
  return "torn";
}

// All that is seen of `path` over the seeds.
std::set<std::string> outcomes(const std::function<void(MemoryFileSystem&)>& before,
                               const std::function<std::string(MemoryFileSystem&)>& after) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
    MemoryFileSystem fs;
    before(fs);
    fs.crash(seed);
    seen.insert(after(fs));
  }
  return seen;
}

using Seen = std::set<std::string>;

TEST(Crash, SyncedContentWithASyncedNameIsNeverLost) {
  const auto seen = outcomes(
      [](auto& fs) {
        write(fs, "f", pattern(10'000, 1), true);
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
      },
      [](auto& fs) { return look(fs, "f", 10'000); });
  EXPECT_EQ(seen, Seen{"old"});
}

TEST(Crash, ASyncedFileMayLoseItsNameOnly) {
  const auto seen = outcomes([](auto& fs) { write(fs, "f", pattern(10'000, 1), true); },
                             [](auto& fs) { return look(fs, "f", 10'000); });
  EXPECT_EQ(seen, (Seen{"missing", "old"}));
}

TEST(Crash, SyncedAttributesAreNeverLost) {
  for (const bool synced : {true, false}) {
    const auto seen = outcomes(
        [&](auto& fs) {
          write(fs, "f", pattern(10, 1), true);
          ASSERT_TRUE(is_ok(fs.sync_directory("/")));
          auto file = fs.open("f", Open::reuse_direct);
          ASSERT_TRUE(is_ok(file));
          ASSERT_TRUE(is_ok((*file)->set_attributes({.mode = 0444, .modified = {5, 6}})));
          if (synced) {
            ASSERT_TRUE(is_ok((*file)->sync()));
          }
        },
        [](auto& fs) -> std::string {
          const Attributes now = fs.look("f")->attributes;
          return now.mode == 0444 && now.modified == Moment{5, 6} ? "new" : "old";
        });
    EXPECT_EQ(seen, synced ? Seen{"new"} : (Seen{"new", "old"}));
  }
}

TEST(Crash, AnUnsyncedFileMayBeAnything) {
  const auto seen = outcomes(
      [](auto& fs) {
        write(fs, "f", pattern(10'000, 1), false);
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
      },
      [](auto& fs) { return look(fs, "f", 10'000); });
  EXPECT_EQ(seen, (Seen{"empty", "old", "short", "torn", "zeros"}));
}

TEST(Crash, OverwrittenBlocksAreOldOrNewEachForItself) {
  std::set<std::size_t> block_bytes;
  for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
    MemoryFileSystem fs;
    write(fs, "f", pattern(65'536, 1), true);
    ASSERT_TRUE(is_ok(fs.sync_directory("/")));
    {
      auto file = fs.open("f", Open::reuse_direct);
      AlignedBytes bytes(65'536);
      fill_pattern(bytes.all(), 2);
      ASSERT_TRUE(is_ok((*file)->write_at(0, bytes.all())));
    }
    fs.crash(seed);
    const auto bytes = read_file(fs, "f", 65'536);
    ASSERT_TRUE(is_ok(bytes));
    ASSERT_EQ(bytes->size(), 65'536u);
    bool before = false;
    for (std::size_t at = 0; at < 65'536; at += 512) {
      const Bytes block = Bytes(*bytes).subspan(at, 512);
      const bool old = first_difference(block, 1, at) == 512;
      ASSERT_TRUE(old || first_difference(block, 2, at) == 512) << "seed " << seed << " at " << at;
      if (at > 0 && old != before) block_bytes.insert(at % 4096 == 0 ? 4096 : 512);
      before = old;
    }
  }
  EXPECT_EQ(block_bytes, (std::set<std::size_t>{512, 4096}));
}

TEST(Crash, ARenameInAFolderIsOneEvent) {
  const auto seen = outcomes(
      [](auto& fs) {
        write(fs, "f", pattern(1'000, 1), true);
        write(fs, "f.tmp", pattern(1'000, 2), true);
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
        ASSERT_TRUE(is_ok(fs.rename("f.tmp", "f")));
      },
      [](auto& fs) { return look(fs, "f", 1'000) + " " + look(fs, "f.tmp", 1'000); });
  EXPECT_EQ(seen, (Seen{"new missing", "old new"}));
}

TEST(Crash, ARenameBetweenFoldersIsTwo) {
  const auto seen = outcomes(
      [](auto& fs) {
        ASSERT_TRUE(is_ok(fs.make_directories("a")));
        ASSERT_TRUE(is_ok(fs.make_directories("b")));
        write(fs, "a/f", pattern(1'000, 1), true);
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
        ASSERT_TRUE(is_ok(fs.sync_directory("a")));
        ASSERT_TRUE(is_ok(fs.rename("a/f", "b/f")));
      },
      [](auto& fs) { return look(fs, "a/f", 1'000) + " " + look(fs, "b/f", 1'000); });
  EXPECT_EQ(seen, (Seen{"missing missing", "missing old", "old missing", "old old"}));
}

TEST(Crash, ARenameMaySurviveWithoutTheContent) {
  const auto seen = outcomes(
      [](auto& fs) {
        write(fs, "f", pattern(10'000, 1), true);
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
        write(fs, "f.tmp", pattern(10'000, 2), false);
        ASSERT_TRUE(is_ok(fs.rename("f.tmp", "f")));
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
      },
      [](auto& fs) { return look(fs, "f", 10'000); });
  EXPECT_EQ(seen, (Seen{"empty", "new", "short", "torn", "zeros"}));
}

TEST(Crash, RemovalsMayComeBack) {
  const auto seen = outcomes(
      [](auto& fs) {
        ASSERT_TRUE(is_ok(fs.make_directories("a")));
        write(fs, "a/f", pattern(1'000, 1), true);
        ASSERT_TRUE(is_ok(fs.sync_directory("/")));
        ASSERT_TRUE(is_ok(fs.sync_directory("a")));
        ASSERT_TRUE(is_ok(fs.remove("a/f")));
        ASSERT_TRUE(is_ok(fs.remove("a")));
      },
      [](auto& fs) { return (fs.list("a").ok() ? "a " : "- ") + look(fs, "a/f", 1'000); });
  EXPECT_EQ(seen, (Seen{"- missing", "a missing", "a old"}));
}

TEST(Crash, AFolderThatWasNotSyncedTakesItsFilesAlong) {
  const auto seen = outcomes(
      [](auto& fs) {
        ASSERT_TRUE(is_ok(fs.make_directories("a/b")));
        write(fs, "a/b/f", pattern(1'000, 1), true);
        ASSERT_TRUE(is_ok(fs.sync_directory("a/b")));
      },
      [](auto& fs) { return look(fs, "a/b/f", 1'000); });
  EXPECT_EQ(seen, (Seen{"missing", "old"}));
}

TEST(Crash, TheSameSeedLosesTheSame) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::set<Buffer> results;
    for (int i = 0; i < 2; ++i) {
      MemoryFileSystem fs;
      write(fs, "f", pattern(50'000, 1), false);
      ASSERT_TRUE(is_ok(fs.sync_directory("/")));
      fs.crash(seed);
      results.insert(*read_file(fs, "f", 50'000));
    }
    EXPECT_EQ(results.size(), 1u) << seed;
  }
}

TEST(Crash, OpenFilesDie) {
  MemoryFileSystem fs;
  auto file = fs.open("f", Open::create);
  fs.crash(1);
  Buffer byte(1);
  EXPECT_TRUE(fails_with((*file)->write_at(0, byte), Code::io));
  EXPECT_TRUE(fails_with((*file)->read_at(0, byte), Code::io));
  EXPECT_TRUE(fails_with((*file)->sync(), Code::io));
  EXPECT_TRUE(fails_with((*file)->size(), Code::io));
}

TEST(Crash, AWriteThatWasNotReapedIsNotInASync) {
  bool lost = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MemoryFileSystem fs;
    auto file = fs.open("f", Open::create);
    ASSERT_TRUE(is_ok(fs.sync_directory("/")));
    const auto ring = make_memory_ring({.seed = seed});
    const Buffer bytes = pattern(512, 1);
    ring->write(**file, 0, bytes, 1);
    ASSERT_TRUE(is_ok((*file)->sync()));
    (void)ring->reap(true);
    fs.crash(seed);
    lost = lost || *read_file(fs, "f", 512) != bytes;
  }
  EXPECT_TRUE(lost);
}

// The property of publish_file, stopped before and in the middle of each of its calls.
TEST(Crash, PublishIsOldOrNewAndNewOnceItReturned) {
  for (const Fault fault : {Fault::stop, Fault::stop_midway}) {
    bool returned = false;
    for (std::uint64_t at = 1; !returned; ++at) {
      ASSERT_LT(at, 100u);
      for (std::uint64_t seed = 0; seed < seed_count; ++seed) {
        MemoryFileSystem fs;
        ASSERT_TRUE(is_ok(publish_file(fs, "f", pattern(9'000, 1))));
        const auto faults = std::make_shared<Faults>(FaultPlan{fault, at});
        const auto faulty = make_faulty_filesystem(fs, faults);
        returned = publish_file(*faulty, "f", pattern(9'000, 2)).ok();
        fs.crash(seed);
        const std::string seen = look(fs, "f", 9'000);
        ASSERT_TRUE(seen == "new" || (seen == "old" && !returned))
            << seen << ", stopped at call " << at << " " << faults->chosen() << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace backstay::io
