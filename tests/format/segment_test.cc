#include "format/segment.h"

#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

TEST(Segment, SlotsAreWholeBlocks) {
  static_assert(slot_bytes(0) == 0);
  static_assert(slot_bytes(1) == 4096);
  static_assert(slot_bytes(4096) == 4096);
  static_assert(slot_bytes(5000) == 8192);
  static_assert(slot_bytes(4ULL << 20) == 4ULL << 20);
}

TEST(Segment, HeaderComesBack) {
  const SegmentHeader header = test::example_segment();
  const Buffer block = encode(header);
  ASSERT_EQ(block.size(), 4096U);
  const auto back = decode_segment_header(block);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ((*back).job, header.job);
  EXPECT_EQ((*back).node, header.node);
  EXPECT_EQ((*back).version, header.version);
  EXPECT_EQ((*back).run, header.run);
  EXPECT_EQ((*back).created_ns, header.created_ns);
}

TEST(Segment, EveryFlippedByteIsRefusedThePaddingIncluded) {
  test::for_every_flip(encode(test::example_segment()), [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(decode_segment_header(damaged).ok()) << "byte " << at;
  });
}

TEST(Segment, EveryTruncationIsRefused) {
  test::for_every_prefix(encode(test::example_segment()), [](const Buffer& shorter) {
    EXPECT_FALSE(decode_segment_header(shorter).ok()) << shorter.size();
  });
}

TEST(Segment, ResealedNonsenseIsRefused) {
  const auto refused = [](std::size_t at, auto value) {
    Buffer block = encode(test::example_segment());
    test::overwrite(block, at, value);
    test::reseal(block, 152);
    return !decode_segment_header(block).ok();
  };
  EXPECT_FALSE(refused(32, std::uint64_t{5}));  // another time is fine
  EXPECT_TRUE(refused(8, std::uint32_t{0}));
  EXPECT_TRUE(refused(8, std::uint32_t{1}));
  EXPECT_TRUE(refused(8, std::uint32_t{3}));
  EXPECT_TRUE(refused(16, std::uint64_t{0}));
  EXPECT_TRUE(refused(40, std::uint32_t{512}));
  EXPECT_TRUE(refused(44, std::uint32_t{1}));
  EXPECT_TRUE(refused(48, '/'));
  EXPECT_TRUE(refused(48, '\0'));
  EXPECT_TRUE(refused(100, 'x'));  // after the end of the name
}

TEST(Segment, LongestJobNameFits) {
  SegmentHeader header = test::example_segment();
  header.job = std::string(100, 'j');
  const auto back = decode_segment_header(encode(header));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back).job, header.job);
}

}  // namespace
}  // namespace backstay::format
