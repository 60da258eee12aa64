// A version of an earlier run, which the program goes on from: what it had on nodes that are gone
// is copied again in the new run.
#include <gtest/gtest.h>

#include "agent/protected_world.h"

namespace backstay::agent {
namespace {

using namespace testing;

class Inherited : public ::testing::Test {
 protected:
  void begin(std::uint32_t nodes, std::uint32_t replicas) {
    world.emplace(nodes, replicas);
    for (NodeId node = 0; node < nodes; ++node) world->network[node].state.run = run + 1;
  }
  FileOf leave(NodeId node) { return world->write(node, 5); }
  void copy_to(NodeId node, const FileOf& file) {
    auto tier = tier_on(*world->network.disks[node]);
    for (const std::string& name : {segment_of(file), manifest_of(file)}) {
      const Buffer bytes = bytes_of(world->network, file.node, name);
      ASSERT_TRUE(tier->put(name, bytes).ok());
    }
  }
  void inherit(NodeId at, const FileOf& file, std::set<NodeId> others) {
    const HeldFile held{file, 4, 4, world->segments[file].size(), {file.node}, std::nullopt};
    world->network[at].replicator->inherited(held, std::move(others));
  }

  std::optional<ProtectedWorld> world;
};

TEST_F(Inherited, IsCopiedAndAgainWhenAHolderIsLost) {
  begin(4, 1);
  const FileOf file = leave(1);
  inherit(1, file, {});
  world->network.run_for(second);
  EXPECT_EQ(world->copies(file), 2u);
  EXPECT_TRUE(world->network[1].logged("reprotected"));
  EXPECT_TRUE(world->network[1].told.empty()) << "it is no version of this run";
  NodeId keeper = 0;
  while (keeper == 1 || bytes_of(world->network, keeper, manifest_of(file)).empty()) ++keeper;
  world->network.kill(keeper);
  world->network.membership({keeper}, {});
  world->network.run_for(second);
  EXPECT_EQ(world->copies(file), 2u);
  world->expect_rest();
}

TEST_F(Inherited, OneOfThoseWhoHaveItSeesToIt) {
  begin(5, 2);
  const FileOf file = leave(3);
  copy_to(1, file);
  inherit(3, file, {1});
  inherit(1, file, {3});
  world->network.run_for(second);
  EXPECT_EQ(world->copies(file), 3u);
  EXPECT_TRUE(world->network[1].logged("reprotected"));
  EXPECT_FALSE(world->network[3].logged("reprotect"));
  world->expect_rest();
}

TEST_F(Inherited, WhatHasAllItsCopiesIsLeftAlone) {
  begin(4, 1);
  const FileOf file = leave(1);
  inherit(1, file, {0, 1});
  world->network.run_for(second);
  EXPECT_EQ(world->copies(file), 1u) << "0 has one, it was said";
  EXPECT_FALSE(world->network[1].logged("reprotect"));
}

TEST_F(Inherited, NumbersMayBeThoseOfARunOfMoreNodes) {
  begin(3, 1);
  const FileOf file = write_file(world->network, /*node=*/7, 5, 3, /*disk=*/2);
  const Buffer segment = bytes_of(world->network, 2, segment_of(file));
  const HeldFile held{file, 8, 8, segment.size(), {7}, std::nullopt};
  world->network[2].replicator->inherited(held, {});
  world->network.run_for(second);
  const auto holders = std::ranges::count_if(std::vector<NodeId>{0, 1, 2}, [&](NodeId node) {
    return bytes_of(world->network, node, segment_of(file)) == segment;
  });
  EXPECT_EQ(holders, 2);
}

}  // namespace
}  // namespace backstay::agent
