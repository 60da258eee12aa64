#include "format/parity_manifest.h"

#include <gtest/gtest.h>

#include "format/names.h"
#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

TEST(ParityManifest, ComesBack) {
  const ParityManifest parity = test::example_parity_manifest();
  const Buffer bytes = encode(parity);
  const auto back = decode_parity_manifest(bytes);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ((*back).job, "heat");
  EXPECT_EQ((*back).node, 3U);
  EXPECT_EQ((*back).version, 12U);
  EXPECT_EQ((*back).run, parity.run);
  EXPECT_EQ((*back).data, 2U);
  EXPECT_EQ((*back).parity, 1U);
  EXPECT_EQ((*back).block_bytes, 16384U);
  EXPECT_EQ((*back).manifests, parity.manifests);
  EXPECT_EQ((*back).checksums, parity.checksums);
  EXPECT_EQ(encode(*back), bytes);
  const auto members = decode_members(*back);
  ASSERT_TRUE(members.ok()) << members.error().to_string();
  EXPECT_EQ((*members)[0].node, 5U);
  EXPECT_EQ((*members)[2].segment_bytes, 8192U);
}

TEST(ParityManifest, EveryFlippedByteAndEveryOtherLengthIsRefused) {
  const Buffer good = encode(test::example_parity_manifest());
  test::for_every_flip(good, [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(decode_parity_manifest(damaged).ok()) << "byte " << at;
  });
  test::for_every_prefix(good, [](const Buffer& shorter) {
    EXPECT_FALSE(decode_parity_manifest(shorter).ok()) << shorter.size();
  });
  Buffer longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_parity_manifest(longer).ok());
}

TEST(ParityManifest, ResealedNonsenseIsRefused) {
  const auto refused = [](std::size_t at, auto value) {
    Buffer bytes = encode(test::example_parity_manifest());
    test::overwrite(bytes, at, value);
    test::reseal(bytes, parity_header_bytes - 8);
    test::reseal(bytes, bytes.size() - 8);
    return !decode_parity_manifest(bytes).ok();
  };
  EXPECT_FALSE(refused(12, std::uint32_t{5}));
  EXPECT_TRUE(refused(8, std::uint32_t{1})) << "format";
  EXPECT_TRUE(refused(8, std::uint32_t{3})) << "format";
  EXPECT_TRUE(refused(16, std::uint64_t{0})) << "version";
  for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{5000}, std::uint64_t{1} << 62})
    EXPECT_TRUE(refused(32, block)) << block;
  EXPECT_TRUE(refused(40, ~std::uint64_t{0})) << "bytes of the manifests";
  EXPECT_TRUE(refused(48, std::uint64_t{3})) << "checksums";
  for (const std::uint32_t count : {0U, 3U, 255U, ~0U}) EXPECT_TRUE(refused(56, count)) << count;
  for (const std::uint32_t count : {0U, 2U, 5U, ~0U}) EXPECT_TRUE(refused(60, count)) << count;
  for (const std::uint32_t bytes : {0U, 100U, 4096U}) EXPECT_TRUE(refused(64, bytes)) << bytes;
  EXPECT_TRUE(refused(68, std::uint32_t{1})) << "zeros";
  EXPECT_TRUE(refused(72, '.')) << "job";
  EXPECT_TRUE(refused(184, std::uint64_t{1})) << "length of a manifest";
  EXPECT_TRUE(refused(192, std::uint64_t{1})) << "zeros";
}

TEST(ParityManifest, MembersThatDoNotBelongTogetherAreRefused) {
  const auto changed = [](auto change) {
    ParityManifest parity = test::example_parity_manifest();
    change(parity);
    return decode_members(parity).ok();
  };
  EXPECT_TRUE(changed([](ParityManifest&) {}));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.job = "cold"; }));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.version = 13; }));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.run ^= 1; }));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.node = 4; }));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.block_bytes += 4096; }));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.manifests[1] = one.manifests[0]; }));
  EXPECT_FALSE(changed([](ParityManifest& one) { one.manifests[2][190] ^= std::byte{1}; }));
}

TEST(ParityManifest, Names) {
  EXPECT_EQ(parity_name("job/v1", 12), "job/v1/node-0000012.parity");
  EXPECT_EQ(parity_manifest_name("job/v1", 12), "job/v1/node-0000012.parity-manifest");
  EXPECT_EQ(node_of_parity_manifest("node-0000012.parity-manifest"), std::optional<NodeId>(12));
  EXPECT_FALSE(node_of_parity_manifest("node-0000012.parity"));
  EXPECT_FALSE(node_of_parity_manifest("node-0000012.manifest"));
  EXPECT_FALSE(node_of_manifest("node-0000012.parity-manifest"));
}

}  // namespace
}  // namespace backstay::format
