// Extent maps against the plainest model: a file as one place in the object for each of its bytes.
#include "format/extent_map.h"

#include <gtest/gtest.h>

#include "support/samples.h"

namespace backstay::format {
namespace {

using test::Random;

constexpr std::uint64_t hole = ~0ULL;

// Where each byte of the file lies, or `hole`.
using Model = std::vector<std::uint64_t>;

void write(Model& model, const Extent& extent) {
  for (std::uint64_t i = 0; i < extent.bytes; ++i) {
    model[extent.file_offset + i] = extent.object_offset + i;
  }
}

void expect_same(const ExtentMap& map, const Model& model, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t at = begin;
  for (const ReadPiece& piece : map.read(begin, end)) {
    ASSERT_EQ(piece.file_offset, at);
    ASSERT_GT(piece.bytes, 0U);
    for (std::uint64_t i = 0; i < piece.bytes; ++i, ++at) {
      ASSERT_EQ(piece.object_offset ? *piece.object_offset + i : hole, model[at]) << "byte " << at;
    }
  }
  ASSERT_EQ(at, end);
}

TEST(ExtentMap, RandomTablesReadAsAPlainModelDoes) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (int i = 0; i < 200; ++i) {
    for (const CapturedFile& file : test::random_files(random, 4000)) {
      const ExtentMap map(file.extents);
      Model model(file.bytes, hole);
      for (const Extent& extent : file.extents) write(model, extent);
      expect_same(map, model, 0, file.bytes);
      const std::uint64_t begin = random.between(0, file.bytes);
      expect_same(map, model, begin, random.between(begin, file.bytes));
    }
  }
}

TEST(ExtentMap, RandomWritesAndCutsLeaveWhatAPlainModelHas) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (int i = 0; i < 100; ++i) {
    ExtentMap map;
    Model model(500, hole);
    std::uint64_t written = 0;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t begin = random.between(0, model.size());
      const std::uint64_t end = random.between(begin, model.size());
      if (random.between(0, 3) == 0) {
        map.cut(begin, end);
        std::fill(model.begin() + static_cast<std::ptrdiff_t>(begin),
                  model.begin() + static_cast<std::ptrdiff_t>(end), hole);
      } else {
        map.write({begin, end - begin, written});
        write(model, {begin, end - begin, written});
        written += end - begin;
      }
      expect_same(map, model, 0, model.size());
    }
    expect_same(ExtentMap(map.extents()), model, 0, model.size());
  }
}

TEST(ExtentMap, WritesInSequenceAreOnePiece) {
  ExtentMap map;
  for (std::uint64_t at = 0; at < 100; at += 10) map.write({at, 10, 1000 + at});
  EXPECT_EQ(map.extents(), (std::vector<Extent>{{0, 100, 1000}}));
  map.write({200, 10, 2000});
  map.write({190, 10, 1990});  // in front of it, in both
  map.write({210, 10, 9000});  // behind it in the file alone
  EXPECT_EQ(map.extents(), (std::vector<Extent>{{0, 100, 1000}, {190, 20, 1990}, {210, 10, 9000}}));
}

TEST(ExtentMap, AHoleInTheMiddleSplitsAPiece) {
  ExtentMap map;
  map.write({0, 100, 0});
  map.cut(40, 60);
  EXPECT_EQ(map.extents(), (std::vector<Extent>{{0, 40, 0}, {60, 40, 60}}));
  EXPECT_EQ(map.read(30, 70), (std::vector<ReadPiece>{{30, 10, 30}, {40, 20, {}}, {60, 10, 60}}));
  map.cut(60, ~0ULL);
  EXPECT_EQ(map.extents(), (std::vector<Extent>{{0, 40, 0}}));
}

TEST(ExtentMap, NothingIsOneHole) {
  EXPECT_TRUE(ExtentMap().extents().empty());
  EXPECT_EQ(ExtentMap().read(5, 9), (std::vector<ReadPiece>{{5, 4, {}}}));
  EXPECT_TRUE(ExtentMap().read(5, 5).empty());
}

}  // namespace
}  // namespace backstay::format
