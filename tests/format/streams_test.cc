// The index of streams: what is written comes back, and nothing else is accepted.
#include "format/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/samples.h"

namespace backstay::format {
namespace {

using test::Random;
using testing::HasSubstr;

Result<std::vector<Stream>> read(Bytes tail, std::uint64_t bytes) {
  if (tail.size() < streams_trailer_bytes) return Error(Code::corrupt, "short");
  BACKSTAY_ASSIGN(const auto trailer,
                  decode_streams_trailer(tail.last(streams_trailer_bytes), bytes + tail.size()));
  if (trailer.index_offset != bytes) return Error(Code::corrupt, "another place");
  return decode_streams(tail.first(trailer.index_bytes), trailer);
}

void expect_refused(const std::vector<Stream>& streams, std::uint64_t bytes,
                    const std::string& why) {
  const auto result = read(encode_streams(streams, bytes), bytes);
  ASSERT_FALSE(result.ok()) << why;
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

TEST(Streams, ComeBackAsTheyWere) {
  const std::uint64_t seed = test::seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int i = 0; i < 300; ++i) {
    std::uint64_t bytes = 0;
    const auto streams = test::random_streams(random, bytes);
    const auto back = read(encode_streams(streams, bytes), bytes);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(*back, streams);
  }
}

TEST(Streams, PiecesOfOneThatFollowEachOtherAreOne) {
  Stream stream{"s", 0, {}};
  stream.append(0, 5);
  stream.append(5, 7);
  stream.append(20, 1);
  EXPECT_EQ(stream.bytes, 13U);
  EXPECT_EQ(stream.extents, (std::vector<StreamExtent>{{0, 12}, {20, 1}}));
}

TEST(Streams, WhatCannotBeIsRefused) {
  const auto changed = [](const auto& change) {
    auto streams = test::example_streams();
    change(streams);
    return streams;
  };
  expect_refused(changed([](auto& s) { s[1].name = "left"; }), 7, "twice");
  expect_refused(changed([](auto& s) { s[1].name = ""; }), 7, "name");
  expect_refused(changed([](auto& s) { s[0].bytes = 5; }), 7, "length");
  expect_refused(changed([](auto& s) { s[2].bytes = 1; }), 7, "length");
  expect_refused(changed([](auto& s) { s[0].extents[1].bytes = 0; }), 7, "without bytes");
  expect_refused(changed([](auto& s) { s[0].extents[1].offset = 8; }), 7, "behind the end");
  expect_refused(changed([](auto& s) { std::swap(s[0].extents[0], s[0].extents[1]); }), 7,
                 "behind the one before");
  expect_refused(changed([](auto& s) { s[0].extents[1].offset = 4; }), 7, "overlap");
  expect_refused(test::example_streams(), 8, "cover");
  expect_refused({{"s", 4, {{0, 2}, {2, 2}}}}, 4, "behind the one before");
  expect_refused({{"s", 2, {{~0ULL, 2}}}}, 4, "behind the end");
}

TEST(Streams, ATrailerThatIsNoneIsRefused) {
  const Buffer good = encode_streams(test::example_streams(), 7);
  for (std::size_t at = good.size() - streams_trailer_bytes; at < good.size(); ++at) {
    Buffer bad = good;
    bad[at] ^= std::byte{0x80};
    EXPECT_FALSE(read(bad, 7).ok()) << at;
  }
  EXPECT_FALSE(decode_streams_trailer(Bytes(good).last(23), 134).ok());
  EXPECT_FALSE(decode_streams_trailer(Bytes(good).last(24), 23).ok());
}

// An object's table knows them as one region, the first.
TEST(Streams, AreTheFirstRegionOfTheirObject) {
  const auto decoded = [](std::vector<Region> regions) {
    const std::uint64_t table_offset = lay_out(regions);
    const Buffer tail = encode_tail(regions, table_offset);
    const auto footer =
        decode_footer(Bytes(tail).last(object_footer_bytes), table_offset + tail.size());
    return decode_table(Bytes(tail).first(footer->table_bytes), *footer);
  };
  const Region streams = streams_region(134);
  const Region u = test::example_regions()[1];
  const auto good = decoded({streams, u});
  ASSERT_TRUE(good.ok()) << good.error().to_string();
  ASSERT_NE(find_streams(*good), nullptr);
  EXPECT_EQ(find_streams(*good)->bytes, 134U);
  EXPECT_EQ(find_streams(*decoded({u})), nullptr);
  EXPECT_FALSE(decoded({u, streams}).ok());
  Region empty = u;
  empty.bytes = 0;
  empty.shape = {0};
  EXPECT_FALSE(decoded({empty, streams}).ok());
  Region other = streams;
  other.name = "others";
  EXPECT_FALSE(decoded({other}).ok());
  other = streams;
  other.file_mode = 0644;
  EXPECT_FALSE(decoded({other}).ok());
  other = streams;
  other.type = ElementType::u8;
  EXPECT_FALSE(decoded({other}).ok());
}

}  // namespace
}  // namespace backstay::format
