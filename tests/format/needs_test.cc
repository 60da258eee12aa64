// Manifests whose objects are of several kinds and owners, and whose chunks lie in older versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/manifest.h"
#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr ObjectId files_of_1{OwnerKind::rank, 1, ObjectKind::files};
constexpr ObjectId image_of_1{OwnerKind::rank, 1, ObjectKind::image};
constexpr ObjectId files_of_writer{OwnerKind::writer, 0, ObjectKind::files};
using Sizes = std::vector<std::pair<ObjectId, std::uint64_t>>;

// Ranks 0 and 1 with regions, rank 1 also with files and an image, writer 0 with files. Two chunks
// lie in version 9.
Manifest everything() {
  Manifest manifest = test::example_manifest();
  manifest.segment_bytes = 4096 * 8;
  manifest.needs = {{9, 0x99}};
  manifest.chunks = {{files_of_writer, 10, 0, 4096, 1},
                     {image_of_1, 8192, 0, 8192, 2},
                     {image_of_1, 4196, 8192, 4096 * 100, 3, 1, 5},
                     {files_of_1, 20, 0, 16384, 4},
                     {1, 30, 0, 20480, 5},
                     {0, 40, 0, 4096 * 100, 6, 1, 2}};
  const Sizes sizes = {
      {files_of_writer, 10}, {image_of_1, 12388}, {0, 40}, {1, 30}, {files_of_1, 20}};
  const Status good = index_objects(manifest, sizes);
  EXPECT_TRUE(good.ok()) << good.error().to_string();
  return manifest;
}

// Overwrites a field and makes the checksums good again.
template <typename T>
Result<Manifest> with(const Manifest& manifest, std::size_t at, T value) {
  Buffer bytes = encode(manifest);
  test::overwrite(bytes, at, value);
  test::reseal(bytes, 184);
  test::reseal(bytes, bytes.size() - 8);
  return decode_manifest(bytes);
}

template <typename T>
void expect_refused(std::size_t at, T value, const std::string& why) {
  const auto result = with(everything(), at, value);
  ASSERT_FALSE(result.ok()) << why;
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

void expect_no_index(const Manifest& manifest, const Sizes& sizes, const std::string& why) {
  Manifest wrong = manifest;
  const Status status = index_objects(wrong, sizes);
  ASSERT_FALSE(status.ok()) << why;
  EXPECT_THAT(status.error().message(), HasSubstr(why));
}

TEST(Needs, EachObjectIsFoundByOwnerNumberAndKind) {
  const auto back = decode_manifest(encode(everything()));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  std::vector<std::string> names;
  for (const ObjectEntry& object : back->objects) names.push_back(object_name(object.id));
  EXPECT_THAT(names, ElementsAre("rank 0", "rank 1", "files of rank 1", "process image of rank 1",
                                 "files of writer 0"));
  EXPECT_EQ(back->find(1)->bytes, 30U);
  EXPECT_EQ(back->find(files_of_1)->bytes, 20U);
  EXPECT_EQ(back->find(files_of_writer)->bytes, 10U);
  EXPECT_EQ(back->find({OwnerKind::rank, 0, ObjectKind::files}), nullptr);
  EXPECT_EQ(back->find({OwnerKind::writer, 1, ObjectKind::files}), nullptr);
  EXPECT_THAT(back->ranks_here(), ElementsAre(0, 1));
}

TEST(Needs, ChunksSayWhereTheyLie) {
  const auto back = decode_manifest(encode(everything()));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_THAT(back->needs, ElementsAre(Need{9, 0x99}));
  const auto image = back->chunks_of(*back->find(image_of_1));
  ASSERT_EQ(image.size(), 2U);
  EXPECT_TRUE(image[0].here());
  EXPECT_FALSE(image[1].here());
  EXPECT_EQ(image[1].need, 1U);
  EXPECT_EQ(image[1].node, 5U);
  const Buffer bytes = encode(*back);
  EXPECT_EQ(record_of(*back, bytes).needs, back->needs);
  EXPECT_EQ(record_of(*back, bytes).payload_bytes, 10U + 20 + 30 + 40 + 12388);
}

TEST(Needs, EveryFlippedByteIsRefused) {
  test::for_every_flip(encode(everything()), [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(decode_manifest(damaged).ok()) << "byte " << at;
  });
}

constexpr std::size_t needs_at = 192, objects_at = needs_at + 16, chunks_at = objects_at + 5 * 32;

TEST(Needs, LiesWithGoodChecksumsAreRefused) {
  expect_refused(needs_at, std::uint64_t{0}, "not sorted");
  expect_refused(needs_at, std::uint64_t{12}, "not older");
  expect_refused(objects_at, std::uint32_t{1}, "out of order");
  expect_refused(objects_at + 32, std::uint32_t{64}, "does not have");
  expect_refused(objects_at + 4 * 32 + 4, std::uint16_t{2}, "owner");
  expect_refused(objects_at + 4 * 32 + 6, std::uint16_t{1}, "regions of a writer");
  expect_refused(objects_at + 4 * 32 + 6, std::uint16_t{5}, "unknown kind");
  expect_refused(objects_at + 4 * 32 + 6, std::uint16_t{0}, "unknown kind");
  expect_refused(chunks_at, std::uint32_t{5}, "no object");
  expect_refused(chunks_at, std::uint32_t{1}, "gap or overlap");
  expect_refused(chunks_at + 16, std::uint64_t{0}, "slot outside");
  expect_refused(chunks_at + 16, std::uint64_t{4097}, "slot outside");
  expect_refused(chunks_at + 16, 0ULL - 4096, "slot outside");
  expect_refused(chunks_at + 32, std::uint32_t{2}, "not named");
  expect_refused(chunks_at + 40 + 36, std::uint32_t{1}, "not named");
  EXPECT_TRUE(with(everything(), chunks_at + 36, ~std::uint32_t{0}).ok());       // any node
  EXPECT_TRUE(with(everything(), objects_at + 4 * 32, ~std::uint32_t{0}).ok());  // any writer
}

TEST(Needs, AChunkOfAnOlderVersionMayLieBeyondThisSegmentAndBeNamedTwice) {
  Manifest manifest = everything();
  manifest.chunks[0].segment_offset = std::uint64_t{1} << 50;
  EXPECT_TRUE(decode_manifest(encode(manifest)).ok());
  manifest.chunks[0].segment_offset = 4096 * 100;  // where the image has its second one
  manifest.chunks[0].node = 5;
  EXPECT_TRUE(decode_manifest(encode(manifest)).ok());
}

TEST(Needs, AVersionThatNoChunkNamesIsRefused) {
  Manifest manifest = everything();
  manifest.needs = {{9, 0x99}, {11, 0x99}};
  EXPECT_THAT(decode_manifest(encode(manifest)).error().message(), HasSubstr("no chunk names"));
  manifest.needs = {{9, 0x99}, {9, 0x98}};
  EXPECT_THAT(decode_manifest(encode(manifest)).error().message(), HasSubstr("there twice"));
}

TEST(Needs, PagesOfAnImageAreAligned) {
  Manifest manifest = everything();
  Sizes sizes;
  for (const ObjectEntry& object : manifest.objects) sizes.emplace_back(object.id, object.bytes);
  for (ChunkEntry& chunk : manifest.chunks) {
    if (chunk.object != image_of_1) continue;
    if (chunk.object_offset == 0) chunk.length = 8191;
    if (chunk.object_offset != 0) chunk.object_offset = 8191, chunk.length = 4197;
  }
  expect_no_index(manifest, sizes, "begins within a page");
}

TEST(Needs, ACommitRecordNamesThem) {
  CommitRecord record = test::example_commit();
  for (std::size_t i = 0; i < needs_max; ++i) {
    const Buffer bytes = encode(record);
    const auto back = decode_commit(bytes);
    ASSERT_TRUE(back.ok()) << i << ": " << back.error().to_string();
    EXPECT_EQ(back->needs, record.needs);
    EXPECT_EQ(encode(*back), bytes);
    test::for_every_flip(bytes, [](const Buffer& damaged, std::size_t at) {
      EXPECT_FALSE(decode_commit(damaged).ok()) << "byte " << at;
    });
    if (i < 11) record.needs.push_back({i + 1, ~i});
  }
  record.needs.push_back({12, 1});
  EXPECT_FALSE(decode_commit(encode(record)).ok()) << "itself";
}

TEST(Needs, OfSeveralManifestsAreOneList) {
  const std::vector<Need> a = {{2, 7}, {5, 7}}, b = {{1, 6}, {5, 7}, {8, 7}};
  EXPECT_THAT(both_needs(a, b), ElementsAre(Need{1, 6}, Need{2, 7}, Need{5, 7}, Need{8, 7}));
  EXPECT_TRUE(both_needs({}, {}).empty());
}

TEST(FormatOne, IsRefusedWithTheReleaseThatWroteIt) {
  Buffer bytes = encode(everything());
  test::overwrite(bytes, 8, std::uint32_t{1});
  const auto result = decode_manifest(bytes);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::format);
  EXPECT_THAT(result.error().message(), HasSubstr("format 1, which release 0.1.0 wrote"));
}

}  // namespace
}  // namespace backstay::format
