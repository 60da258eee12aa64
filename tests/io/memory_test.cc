// What the file system in memory adds to the interface: a full disk, strict O_DIRECT, and a ring
// that works late.
#include "io/memory.h"

#include <gtest/gtest.h>

#include "aligned_bytes.h"
#include "expect_status.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

TEST(MemoryDisk, FullDiskWritesWhatFits) {
  MemoryFileSystem fs({.capacity_bytes = 1000});
  auto file = fs.open("f", Open::create);
  ASSERT_TRUE(is_ok(file));
  EXPECT_TRUE(fails_with((*file)->write_at(0, pattern(1001, 1)), Code::no_space));
  EXPECT_EQ(*(*file)->size(), 1000u);
  EXPECT_TRUE(is_ok((*file)->write_at(500, pattern(500, 2)))) << "overwriting needs no room";
  EXPECT_TRUE(fails_with((*file)->allocate(2000), Code::no_space));
  EXPECT_EQ(*(*file)->size(), 1000u);
}

TEST(MemoryDisk, RoomComesBack) {
  MemoryFileSystem fs({.capacity_bytes = 1000});
  {
    auto file = fs.open("f", Open::create);
    ASSERT_TRUE(is_ok((*file)->allocate(1000)));
    ASSERT_TRUE(is_ok(fs.remove("f")));
    EXPECT_EQ(fs.used_bytes(), 1000u) << "an open file keeps its room";
  }
  EXPECT_EQ(fs.used_bytes(), 0u);
  ASSERT_TRUE(is_ok(publish_file(fs, "g", pattern(600, 1))));
  EXPECT_TRUE(fails_with(publish_file(fs, "g", pattern(600, 2)), Code::no_space));
  EXPECT_EQ(*read_file(fs, "g", 1000), pattern(600, 1)) << "the old one stays";
  EXPECT_EQ(fs.used_bytes(), 600u) << "the failed one left something";
  fs.crash(1);
  EXPECT_EQ(fs.used_bytes(), 600u);
}

TEST(MemoryDisk, DirectAccessIsStrict) {
  MemoryFileSystem fs;
  AlignedBytes bytes(8192);
  auto file = fs.open("f", Open::create_direct);
  EXPECT_TRUE((*file)->direct());
  EXPECT_TRUE(is_ok((*file)->write_at(0, bytes.all())));
  EXPECT_TRUE(fails_with((*file)->write_at(1, bytes.part(0, 4096)), Code::io));
  EXPECT_TRUE(fails_with((*file)->write_at(0, bytes.part(0, 100)), Code::io));
  EXPECT_TRUE(fails_with((*file)->write_at(0, bytes.part(1, 4096)), Code::io));
}

TEST(MemoryDisk, FoldersDoNotMoveToOtherFolders) {
  MemoryFileSystem fs;
  ASSERT_TRUE(is_ok(fs.make_directories("/a/b")));
  ASSERT_TRUE(is_ok(fs.make_directories("/c")));
  EXPECT_FALSE(fs.rename("/a/b", "/c/b").ok());
  EXPECT_TRUE(is_ok(fs.rename("/a/b", "/a/d")));
}

TEST(MemoryRing, WorksWhenItIsReaped) {
  MemoryFileSystem fs;
  auto file = fs.open("f", Open::create);
  const auto ring = make_memory_ring();
  const Buffer bytes = pattern(100, 1);
  ring->write(**file, 0, bytes, 1);
  EXPECT_EQ(*(*file)->size(), 0u);
  ASSERT_EQ(ring->reap(true).size(), 1u);
  EXPECT_EQ(*(*file)->size(), 100u);
}

std::vector<std::uint64_t> order_of(std::uint64_t seed) {
  MemoryFileSystem fs;
  auto file = fs.open("f", Open::create);
  const auto ring = make_memory_ring({.depth = 8, .seed = seed});
  const Buffer bytes = pattern(8, 1);
  for (std::uint64_t i = 0; i < 8; ++i) ring->write(**file, 8 * i, bytes, i);
  std::vector<std::uint64_t> order;
  while (ring->in_flight() > 0) {
    for (const auto& one : ring->reap(true)) order.push_back(one.tag);
  }
  return order;
}

TEST(MemoryRing, TheSeedChoosesTheOrder) {
  EXPECT_EQ(order_of(5), order_of(5));
  EXPECT_NE(order_of(5), order_of(6));
}

TEST(MemoryRing, FailsAsManyAsAsked) {
  MemoryFileSystem fs;
  auto file = fs.open("f", Open::create);
  const auto ring = make_memory_ring({.depth = 1, .seed = 3, .fail_one_in = 4});
  const Buffer bytes = pattern(16384, 1);
  int failed = 0;
  for (int i = 0; i < 400; ++i) {
    ring->write(**file, 0, bytes, 1);
    if (!ring->reap(true).at(0).status.ok()) ++failed;
  }
  EXPECT_GT(failed, 50);
  EXPECT_LT(failed, 150);
}

}  // namespace
}  // namespace backstay::io
