#include "golden/golden.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/checksum.h"
#include "format/manifest.h"
#include "format/segment.h"

namespace backstay::format {
namespace {

const std::filesystem::path released = BACKSTAY_GOLDEN_DIR "/v2";
const std::string old_format = BACKSTAY_GOLDEN_DIR "/v1/golden/v0000000000000012/";
const std::string folder = "golden/v0000000000000012/";

Buffer read(const std::filesystem::path& name) {
  std::ifstream file(released / name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

// The object of a rank, put together from the released files.
Buffer object_of(const Manifest& manifest, const Buffer& segment, Rank rank) {
  const ObjectEntry* entry = manifest.find(rank);
  if (entry == nullptr) return {};
  Buffer object;
  for (const ChunkEntry& chunk : manifest.chunks_of(*entry)) {
    const Bytes part = Bytes(segment).subspan(chunk.segment_offset, chunk.length);
    EXPECT_EQ(checksum(part), chunk.checksum);
    object.insert(object.end(), part.begin(), part.end());
  }
  EXPECT_EQ(object.size(), entry->bytes);
  return object;
}

TEST(Golden, TodaysWriterMakesTheSameBytes) {
  for (const auto& [name, bytes] : test::golden_files()) {
    EXPECT_EQ(bytes, read(name)) << name;
  }
}

void expect_refused(const Error& error) {
  EXPECT_EQ(error.code(), Code::format);
  EXPECT_NE(error.message().find("format 1, which release 0.1.0 wrote"), std::string::npos)
      << error.message();
}

TEST(Golden, FormatOneIsRefusedByName) {
  const auto manifest = decode_manifest(read(old_format + "node-0000000.manifest"));
  ASSERT_FALSE(manifest.ok());
  expect_refused(manifest.error());
  const auto commit = decode_commit(read(old_format + "commit.local"));
  ASSERT_FALSE(commit.ok());
  expect_refused(commit.error());
  const Buffer segment = read(old_format + "node-0000000.segment");
  const auto header = decode_segment_header(Bytes(segment).first(segment_header_bytes));
  ASSERT_FALSE(header.ok());
  expect_refused(header.error());
}

TEST(Golden, RecordsAreRead) {
  const Buffer segment = read(folder + "node-0000000.segment");
  ASSERT_GE(segment.size(), segment_header_bytes);
  const auto header = decode_segment_header(Bytes(segment).first(segment_header_bytes));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ((*header).job, "golden");
  EXPECT_EQ((*header).version, 12U);
  const Buffer encoded = read(folder + "node-0000000.manifest");
  const auto manifest = decode_manifest(encoded);
  ASSERT_TRUE(manifest.ok());
  const auto commit = decode_commit(read(folder + "commit.local"));
  ASSERT_TRUE(commit.ok());
  EXPECT_EQ((*commit).level, Level::local);
  EXPECT_EQ((*commit).manifests_sum, manifest_digest(encoded));
  EXPECT_EQ((*commit).run, (*manifest).run);
  EXPECT_EQ((*commit).ranks, test::golden_ranks);
}

TEST(Golden, ObjectsAreRead) {
  const auto manifest = decode_manifest(read(folder + "node-0000000.manifest"));
  ASSERT_TRUE(manifest.ok());
  const Buffer segment = read(folder + "node-0000000.segment");
  ASSERT_EQ(segment.size(), (*manifest).segment_bytes);
  for (Rank rank = 0; rank < test::golden_ranks; ++rank) {
    const Buffer object = object_of(*manifest, segment, rank);
    ASSERT_GE(object.size(), object_footer_bytes);
    const auto footer = decode_footer(Bytes(object).last(object_footer_bytes), object.size());
    ASSERT_TRUE(footer.ok());
    const auto table =
        decode_table(Bytes(object).subspan((*footer).table_offset, (*footer).table_bytes), *footer);
    ASSERT_TRUE(table.ok());
    const auto& regions = table->regions;
    const auto expected = test::golden_regions(rank);
    ASSERT_EQ(regions.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Region& region = regions[i];
      EXPECT_EQ(region.name, expected[i].region.name);
      EXPECT_EQ(region.type, expected[i].region.type);
      EXPECT_EQ(region.shape, expected[i].region.shape);
      EXPECT_EQ(region.global_offset, expected[i].region.global_offset);
      const Bytes payload = Bytes(object).subspan(region.offset, region.bytes);
      EXPECT_TRUE(std::equal(payload.begin(), payload.end(), expected[i].payload.begin(),
                             expected[i].payload.end()))
          << region.name;
    }
  }
}

TEST(GoldenStreams, TodaysWriterMakesTheSameBytes) {
  for (const auto& [name, bytes] : test::golden_stream_files()) {
    std::ifstream file(std::string(BACKSTAY_GOLDEN_DIR "/v2/") + name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto raw = std::as_bytes(std::span(text));
    EXPECT_EQ(bytes, Buffer(raw.begin(), raw.end())) << name;
  }
}

}  // namespace
}  // namespace backstay::format
