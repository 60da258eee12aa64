#include "format/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

using test::Random;
using testing::HasSubstr;

void expect_refused(const Manifest& manifest, const std::string& why) {
  const auto result = decode_manifest(encode(manifest));
  ASSERT_FALSE(result.ok()) << "accepted, expected: " << why;
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

// One object of rank 0 in three chunks, in the order of the segment 2, 0, 1.
Manifest three_chunks() {
  Manifest manifest = test::example_manifest();
  manifest.segment_bytes = 4096 * 6;
  manifest.chunks = {{0, 100, 0, 12288, 1}, {0, 5000, 100, 16384, 2}, {0, 4096, 5100, 4096, 3}};
  const std::vector<std::pair<Rank, std::uint64_t>> objects = {{0, 9196}};
  EXPECT_TRUE(build_index(manifest, objects).ok());
  return manifest;
}

TEST(Manifest, WorkedExampleOfThePage) {
  const Manifest manifest = test::example_manifest();
  const Buffer bytes = encode(manifest);
  EXPECT_EQ(bytes.size(), 192U + 2 * 32 + 2 * 40 + 8);
  const auto back = decode_manifest(bytes);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ((*back).job, "heat");
  EXPECT_EQ((*back).node, 3U);
  EXPECT_EQ((*back).version, 12U);
  EXPECT_EQ((*back).run, 0x1122334455667788U);
  EXPECT_EQ((*back).segment_bytes, 20480U);
  EXPECT_EQ((*back).nodes, 7U);
  EXPECT_EQ((*back).ranks, 64U);
  EXPECT_EQ((*back).chunk_bytes_max, 4U << 20);
  EXPECT_EQ((*back).captured_ns, manifest.captured_ns);
  const ObjectEntry* object = (*back).find(1);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->bytes, 5000U);
  const auto chunks = (*back).chunks_of(*object);
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].segment_offset, 4096U);
  EXPECT_EQ(chunks[0].checksum, 0xAAAAU);
  EXPECT_EQ((*back).find(2), nullptr);
}

TEST(Manifest, RandomOnesComeBack) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (int i = 0; i < 300; ++i) {
    const Manifest manifest = test::random_manifest(random);
    const Buffer bytes = encode(manifest);
    const auto back = decode_manifest(bytes);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    ASSERT_EQ((*back).objects.size(), manifest.objects.size());
    EXPECT_EQ((*back).needs, manifest.needs);
    for (const ObjectEntry& object : manifest.objects) {
      const ObjectEntry* found = (*back).find(object.id);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->bytes, object.bytes);
      EXPECT_EQ(found->chunk_count, object.chunk_count);
    }
    EXPECT_EQ(encode(*back), bytes);
    EXPECT_EQ(manifest_digest(bytes), checksum(Bytes(bytes).first(bytes.size() - 8)));
  }
}

TEST(Manifest, EveryFlippedByteIsRefused) {
  for (const Manifest& manifest : {test::example_manifest(), three_chunks()}) {
    test::for_every_flip(encode(manifest), [](const Buffer& damaged, std::size_t at) {
      EXPECT_FALSE(decode_manifest(damaged).ok()) << "byte " << at;
    });
  }
}

TEST(Manifest, AnotherLengthIsRefused) {
  const Buffer good = encode(three_chunks());
  test::for_every_prefix(good, [](const Buffer& shorter) {
    EXPECT_FALSE(decode_manifest(shorter).ok()) << shorter.size();
  });
  Buffer longer = good;
  longer.insert(longer.end(), 40, std::byte{0});
  EXPECT_FALSE(decode_manifest(longer).ok());
}

TEST(Manifest, ResealedCountsAreNotBelieved) {
  const Buffer good = encode(three_chunks());
  const auto refused = [&](std::size_t at, auto value) {
    Buffer bytes = good;
    test::overwrite(bytes, at, value);
    test::reseal(bytes, 184);
    test::reseal(bytes, bytes.size() - 8);
    return !decode_manifest(bytes).ok();
  };
  for (const std::uint32_t count : {0U, 2U, 1U << 31, ~0U}) EXPECT_TRUE(refused(40, count));
  for (const std::uint64_t count : {0ULL, 2ULL, 4ULL, 1ULL << 63, ~0ULL, (~0ULL) / 40 + 4}) {
    EXPECT_TRUE(refused(48, count)) << count;
  }
  EXPECT_TRUE(refused(8, std::uint32_t{1}));
  EXPECT_TRUE(refused(8, std::uint32_t{3}));
  EXPECT_TRUE(refused(8, std::uint32_t{0}));
  EXPECT_TRUE(refused(64, '\0'));
  EXPECT_TRUE(refused(167, 'x'));
  EXPECT_TRUE(refused(180, std::uint32_t{1}));  // zeros of the header
  for (const std::uint32_t count : {1U, 21U, ~0U}) EXPECT_TRUE(refused(176, count));
  EXPECT_TRUE(refused(192 + 32, std::uint32_t{1}));       // of no object
  EXPECT_TRUE(refused(192 + 32 + 32, std::uint32_t{1}));  // a need that is not there
  EXPECT_TRUE(refused(192 + 32 + 36, std::uint32_t{1}));  // a node without a need
}

TEST(Manifest, NewerFormatIsNamed) {
  Buffer bytes = encode(three_chunks());
  test::overwrite(bytes, 8, std::uint32_t{7});
  const auto result = decode_manifest(bytes);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::format);
  EXPECT_THAT(result.error().message(), HasSubstr("format 7"));
}

TEST(Manifest, WrongRunIsRefused) {
  const auto changed = [](auto change) {
    Manifest manifest = three_chunks();
    change(manifest);
    return manifest;
  };
  expect_refused(changed([](auto& m) { m.job = "../x"; }), "job name");
  expect_refused(changed([](auto& m) { m.version = 0; }), "version 0");
  expect_refused(changed([](auto& m) { m.node = m.nodes; }), "node number");
  expect_refused(changed([](auto& m) { m.segment_bytes -= 1; }), "whole number of slots");
  expect_refused(changed([](auto& m) { m.segment_bytes = 0; }), "whole number of slots");
  expect_refused(changed([](auto& m) { m.ranks = 0; }), "does not have");
}

TEST(Manifest, WrongObjectsAreRefused) {
  const auto changed = [](auto change) {
    Manifest manifest = test::example_manifest();
    change(manifest);
    return manifest;
  };
  expect_refused(changed([](auto& m) { m.objects[1].id = m.objects[0].id; }), "no object");
  expect_refused(changed([](auto& m) { std::swap(m.objects[0], m.objects[1]); }), "no object");
  expect_refused(changed([](auto& m) { m.objects[0].bytes = 5001; }), "do not cover");
  expect_refused(changed([](auto& m) { m.objects[0].bytes = 4999; }), "longer than");
  expect_refused(changed([](auto& m) { m.objects[0].chunk_count = 2; }), "gap or overlap");
  expect_refused(changed([](auto& m) { m.objects[0].chunk_count = ~0ULL; }), "range of");
  expect_refused(changed([](auto& m) { m.objects[1].first_chunk = 0; }), "range of");
  expect_refused(changed([](auto& m) { m.objects.pop_back(); }), "no object");
}

TEST(Manifest, WrongChunksAreRefused) {
  const auto changed = [](auto change) {
    Manifest manifest = three_chunks();
    change(manifest.chunks);
    return manifest;
  };
  expect_refused(changed([](auto& c) { c[1].object_offset = 101; }), "gap or overlap");
  expect_refused(changed([](auto& c) { c[1].object_offset = 99; }), "gap or overlap");
  expect_refused(changed([](auto& c) { c[0].object_offset = 1; }), "gap or overlap");
  expect_refused(changed([](auto& c) { c[1].object = 1; }), "no object");
  expect_refused(changed([](auto& c) { c[0].length = 0; }), "length of a chunk");
  expect_refused(changed([](auto& c) { c[0].length = (4U << 20) + 1; }), "length of a chunk");
  expect_refused(changed([](auto& c) { c[0].segment_offset = 0; }), "slot outside");
  expect_refused(changed([](auto& c) { c[0].segment_offset += 512; }), "slot outside");
  expect_refused(changed([](auto& c) { c[1].segment_offset = 4096 * 5; }), "slot outside");
  expect_refused(changed([](auto& c) { c[1].segment_offset = 0ULL - 4096; }), "slot outside");
  expect_refused(changed([](auto& c) { c[0].segment_offset = 4096; }), "share bytes");
  expect_refused(changed([](auto& c) { c[0].segment_offset = 4096 * 5; }), "share bytes");
}

TEST(BuildIndex, RefusesWhatNoReaderWouldAccept) {
  using Objects = std::vector<std::pair<Rank, std::uint64_t>>;
  const auto refused = [](const Objects& objects) {
    Manifest manifest = test::example_manifest();
    const Status status = build_index(manifest, objects);
    return !status.ok() && status.error().code() == Code::internal;
  };
  EXPECT_FALSE(refused({{1, 5000}, {0, 5000}}));
  EXPECT_FALSE(refused({{1, 5000}, {0, 5000}, {7, 0}}));
  EXPECT_TRUE(refused({{0, 5000}}));
  EXPECT_TRUE(refused({{0, 5000}, {1, 5001}}));
  EXPECT_TRUE(refused({{0, 5000}, {1, 5000}, {1, 5000}}));
  EXPECT_TRUE(refused({{0, 5000}, {1, 5000}, {64, 0}}));
  EXPECT_TRUE(refused({{0, 5000}, {1, 5000}, {2, 1}}));
}

TEST(Manifest, WithoutObjects) {
  Manifest manifest = test::example_manifest();
  manifest.chunks.clear();
  manifest.segment_bytes = 4096;
  ASSERT_TRUE(build_index(manifest, {}).ok());
  const Buffer bytes = encode(manifest);
  EXPECT_EQ(bytes.size(), 200U);
  EXPECT_TRUE(decode_manifest(bytes).ok());
}

}  // namespace
}  // namespace backstay::format
