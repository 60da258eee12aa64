// A file that was found damaged is replaced by the one that another node has, although what is
// there has the right name and size.
#include <gtest/gtest.h>

#include "agent/agents.h"
#include "agent/redundancy/replicator.h"

namespace backstay::agent {
namespace {

using namespace testing;

TEST(Repair, ADamagedFileIsReplacedByAGoodOne) {
  SCOPED_TRACE(test::replay());
  for (const NodeId bad : {0u, 1u}) {  // its owner's, or a copy
    PlayedNetwork network(2, {.settings = {1, {}, 0}});
    const FileOf file = write_file(network, 0, 1);
    const Buffer segment = bytes_of(network, 0, segment_of(file));
    const Buffer manifest = bytes_of(network, 0, manifest_of(file));
    network[0].replicator->sealed({file, 2, 2, segment.size(), {}, std::nullopt});
    network.run_for();
    Buffer damaged = segment;
    damaged.at(5000) ^= std::byte{1};
    ASSERT_TRUE(io::publish_file(*network.disks[bad], path_of(segment_of(file)), damaged).ok());
    network[bad].replicator->repair(HeldFile{file, 2, 2, segment.size(), {0}, {}}, 1 - bad);
    network.run_for();
    for (const NodeId node : {0u, 1u}) {
      EXPECT_TRUE(has_copy(network, node, file, segment, manifest)) << node;
      EXPECT_TRUE(network[node].pinned().empty());
    }
  }
}

}  // namespace
}  // namespace backstay::agent
