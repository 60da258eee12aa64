// Restarts from a version that needs an older one: on this node's disk, and at another agent.
#include <gtest/gtest.h>

#include "around_harness.h"

namespace backstay::agent::testing {
namespace {

constexpr std::size_t object_size = 2 * slot_bytes + 1000;  // three chunks an object
constexpr RunId saved_by = 11;

TEST(RestartNeeds, EachChunkComesFromTheVersionInWhichItLies) {
  const auto saved = [](NodeId node, VersionNumber version) {
    return NodeFile({version, saved_by, node}, 4, 8, {2 * node, 2 * node + 1}, object_size);
  };
  const NodeFile older0 = saved(0, 3), older1 = saved(1, 3);
  const auto needing = [&](NodeId node, const NodeFile& older) {
    NodeFile file = saved(node, 7);
    file.manifest.needs = {{3, saved_by}};
    format::ChunkEntry& chunk = file.manifest.chunks[0];
    chunk.need = 1;
    chunk.node = node;
    chunk.segment_offset = older.manifest.chunks[0].segment_offset;
    file.segment.at(chunk.segment_offset) ^= std::byte{1};  // its own must not be read there
    file.encoded = format::encode(file.manifest);
    return file;
  };
  const NodeFile newer0 = needing(0, older0), newer1 = needing(1, older1);
  AgentHarness agent(64, 8, {0, 2});
  for (const NodeFile* file : {&older0, &newer0}) agent.put_local(*file);
  for (const NodeFile* file : {&older1, &newer1}) agent.put_at(1, *file);
  agent.restart(7, saved_by, object_size);
  agent.expect_restored(saved_by);
  EXPECT_EQ(agent.disk.reads, 3);
  EXPECT_EQ(agent.agents[1].reads, 3);
}

}  // namespace
}  // namespace backstay::agent::testing
