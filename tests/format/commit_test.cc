#include <gtest/gtest.h>

#include "format/manifest.h"
#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

TEST(Commit, ComesBack) {
  for (const Level level : {Level::local, Level::protected_, Level::durable}) {
    CommitRecord record = test::example_commit();
    record.level = level;
    const Buffer bytes = encode(record);
    ASSERT_EQ(bytes.size(), 512U);
    const auto back = decode_commit(bytes);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ((*back).job, record.job);
    EXPECT_EQ((*back).level, level);
    EXPECT_EQ((*back).version, record.version);
    EXPECT_EQ((*back).run, record.run);
    EXPECT_EQ((*back).nodes, record.nodes);
    EXPECT_EQ((*back).ranks, record.ranks);
    EXPECT_EQ((*back).payload_bytes, record.payload_bytes);
    EXPECT_EQ((*back).manifests_sum, record.manifests_sum);
    EXPECT_EQ((*back).captured_ns, record.captured_ns);
    EXPECT_EQ((*back).committed_ns, record.committed_ns);
  }
}

TEST(Commit, EveryFlippedByteIsRefused) {
  test::for_every_flip(encode(test::example_commit()), [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(decode_commit(damaged).ok()) << "byte " << at;
  });
}

TEST(Commit, AnotherLengthIsRefused) {
  const Buffer good = encode(test::example_commit());
  test::for_every_prefix(good, [](const Buffer& shorter) {
    EXPECT_FALSE(decode_commit(shorter).ok()) << shorter.size();
  });
  Buffer longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_commit(longer).ok());
}

TEST(Commit, ResealedNonsenseIsRefused) {
  const auto refused = [](std::size_t at, auto value) {
    Buffer bytes = encode(test::example_commit());
    test::overwrite(bytes, at, value);
    test::reseal(bytes, 504);
    return !decode_commit(bytes).ok();
  };
  EXPECT_FALSE(refused(12, std::uint32_t{4}));
  EXPECT_TRUE(refused(8, std::uint32_t{1}));
  EXPECT_TRUE(refused(8, std::uint32_t{3}));
  for (const std::uint32_t level : {0U, 1U, 5U, 258U}) EXPECT_TRUE(refused(12, level)) << level;
  EXPECT_TRUE(refused(16, std::uint64_t{0}));
  EXPECT_TRUE(refused(32, std::uint32_t{0}));
  EXPECT_TRUE(refused(36, std::uint32_t{0}));
  EXPECT_TRUE(refused(72, '.'));
  EXPECT_TRUE(refused(175, 'x'));
  EXPECT_TRUE(refused(176, std::uint8_t{1}));
  EXPECT_TRUE(refused(180, std::uint8_t{1}));
  EXPECT_TRUE(refused(184, std::uint8_t{1}));
  EXPECT_TRUE(refused(503, std::uint8_t{1}));
}

}  // namespace
}  // namespace backstay::format
