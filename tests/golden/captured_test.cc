#include "golden/captured.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/checksum.h"
#include "format/extent_map.h"
#include "format/manifest.h"
#include "golden/golden.h"

namespace backstay::format {
namespace {

const std::filesystem::path released_capture = BACKSTAY_GOLDEN_DIR "/v2";

Buffer read_captured(const std::string& name) {
  std::ifstream file(released_capture / name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

// The version, and the segments that its chunks lie in: its own, that of version 12.
struct Golden13 {
  Manifest manifest =
      *decode_manifest(read_captured("captured/v0000000000000013/node-0000000.manifest"));
  Buffer segments[2] = {read_captured("captured/v0000000000000013/node-0000000.segment"),
                        read_captured("captured/v0000000000000012/node-0000000.segment")};

  Buffer object(const ObjectId& id) const {
    const ObjectEntry* entry = manifest.find(id);
    if (entry == nullptr) return {};
    Buffer bytes;
    for (const ChunkEntry& chunk : manifest.chunks_of(*entry)) {
      const Bytes part = Bytes(segments[chunk.need]).subspan(chunk.segment_offset, chunk.length);
      EXPECT_EQ(checksum(part), chunk.checksum);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }
};

TEST(GoldenCaptured, TodaysWriterMakesTheSameBytes) {
  for (const auto& [name, bytes] : test::golden_captured_files()) {
    EXPECT_EQ(bytes, read_captured(name)) << name;
  }
}

TEST(GoldenCaptured, UnchangedChunksLieInTheOlderVersion) {
  const Golden13 golden;
  ASSERT_EQ(golden.manifest.needs.size(), 1U);
  EXPECT_EQ(golden.manifest.needs[0].version, 12U);
  const auto commit = decode_commit(read_captured("captured/v0000000000000013/commit.local"));
  ASSERT_TRUE(commit.ok());
  EXPECT_EQ(commit->needs, golden.manifest.needs);
  std::size_t here = 0, there = 0;
  for (const ObjectEntry& object : golden.manifest.objects) {
    for (const ChunkEntry& chunk : golden.manifest.chunks_of(object)) {
      ++(chunk.here() ? here : there);
      if (object.id == ObjectId(0)) {
        EXPECT_FALSE(chunk.here());
      }
    }
  }
  EXPECT_GT(here, 0U);
  EXPECT_GT(there, 0U);
  for (Rank rank = 0; rank < test::golden_ranks; ++rank) {
    EXPECT_EQ(golden.object(rank), test::golden_object_13(rank)) << rank;
  }
}

// What a file holds, byte by byte, straight from what the page says of extents.
Buffer plainly(const CapturedFile& file, const Buffer& object) {
  Buffer bytes(file.bytes);
  for (const Extent& extent : file.extents) {
    for (std::uint64_t i = 0; i < extent.bytes; ++i) {
      bytes[extent.file_offset + i] = object[extent.object_offset + i];
    }
  }
  return bytes;
}

TEST(GoldenCaptured, FilesAreRead) {
  const Golden13 golden;
  for (const ObjectId& id : {test::golden_files_of_rank, test::golden_files_of_writer}) {
    const Buffer object = golden.object(id);
    ASSERT_GE(object.size(), object_footer_bytes);
    const auto footer =
        decode_footer(Bytes(object).last(object_footer_bytes), object.size(), ObjectKind::files);
    ASSERT_TRUE(footer.ok()) << footer.error().to_string();
    const auto files =
        decode_files(Bytes(object).subspan(footer->table_offset, footer->table_bytes), *footer);
    ASSERT_TRUE(files.ok()) << files.error().to_string();
    EXPECT_EQ(*files, test::golden_captured(id));
    for (const CapturedFile& file : *files) {
      Buffer bytes;
      for (const ReadPiece& piece : ExtentMap(file.extents).read(0, file.bytes)) {
        for (std::uint64_t i = 0; i < piece.bytes; ++i) {
          bytes.push_back(piece.object_offset ? test::golden_byte(id, *piece.object_offset + i)
                                              : std::byte{0});
        }
      }
      EXPECT_EQ(bytes, plainly(file, object)) << file.path;
    }
  }
}

}  // namespace
}  // namespace backstay::format
