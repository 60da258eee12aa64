// The size that the format is made for: 1 000 000 ranks on 100 000 nodes. What one node writes and
// reads does not grow with it, nor does the commit record. The time is printed, not held: builds
// differ.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "format/manifest.h"

namespace backstay::format {
namespace {

constexpr std::uint32_t nodes = 100'000, ranks_per_node = 10, chunks_per_rank = 2;
constexpr std::uint32_t chunk_bytes = 4096;

// Each node's ranks stand apart from each other in the whole: nothing rests on their order.
Manifest of_node(NodeId node) {
  Manifest manifest;
  manifest.job = "heat";
  manifest.node = node;
  manifest.version = 7;
  manifest.run = 1;
  manifest.nodes = nodes;
  manifest.ranks = nodes * ranks_per_node;
  manifest.chunk_bytes_max = chunk_bytes;
  manifest.captured_ns = 1;
  std::vector<std::pair<Rank, std::uint64_t>> objects;
  std::uint64_t at = 4096;
  for (std::uint32_t i = 0; i < ranks_per_node; ++i) {
    const Rank rank = i * nodes + node;
    for (std::uint32_t chunk = 0; chunk < chunks_per_rank; ++chunk, at += chunk_bytes) {
      manifest.chunks.push_back(
          {rank, chunk_bytes, std::uint64_t{chunk} * chunk_bytes, at, at ^ rank});
    }
    objects.emplace_back(rank, std::uint64_t{chunks_per_rank} * chunk_bytes);
  }
  manifest.segment_bytes = at;
  EXPECT_TRUE(build_index(manifest, objects).ok());
  return manifest;
}

TEST(Scale, AMillionRanksOnAHundredThousandNodes) {
  const auto began = std::chrono::steady_clock::now();
  const std::size_t bytes_of_one = manifest_header_bytes + ranks_per_node * object_entry_bytes +
                                   ranks_per_node * chunks_per_rank * chunk_entry_bytes + 8;
  CommitRecord whole{"heat", Level::durable, 7, 1, nodes, nodes * ranks_per_node, 0, 0, 1, 2};
  std::uint64_t ranks_found = 0;
  for (NodeId node = 0; node < nodes; ++node) {
    const Manifest written = of_node(node);
    const Buffer bytes = encode(written);
    ASSERT_EQ(bytes.size(), bytes_of_one) << "node " << node;
    const CommitRecord part = record_of(written, bytes);
    whole.payload_bytes += part.payload_bytes;
    whole.manifests_sum += part.manifests_sum;
    const auto read = decode_manifest(bytes);
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    for (std::uint32_t i = 0; i < ranks_per_node; ++i) {
      const ObjectEntry* object = (*read).find(i * nodes + node);
      ASSERT_NE(object, nullptr);
      ranks_found += (*read).chunks_of(*object).size() == chunks_per_rank ? 1 : 0;
    }
    EXPECT_EQ((*read).find(nodes - 1 - node), nullptr);  // another node's
  }
  EXPECT_EQ(ranks_found, 1'000'000U);
  const Buffer record = encode(whole);
  EXPECT_EQ(record.size(), 512U);
  const auto back = decode_commit(record);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ((*back).ranks, 1'000'000U);
  EXPECT_EQ((*back).payload_bytes, std::uint64_t{1'000'000} * chunks_per_rank * chunk_bytes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%u manifests of %zu bytes written and read in %.2f s, one record of %zu bytes\n",
              nodes, bytes_of_one, took.count(), record.size());
}

}  // namespace
}  // namespace backstay::format
