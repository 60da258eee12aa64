// What lost nodes had is made again out of parity over a played network: byte for byte, whatever
// happens meanwhile, or with a reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "agent/parity_world.h"

namespace backstay::agent {
namespace {

using namespace testing;
using World = ParityWorld;

TEST(Rebuild, MoreThanItMakesUpForIsSaid) {
  World world(4, {3, 1});
  world.save(1);
  world.network.run_for();
  world.restart({1, 2});
  const auto rebuilt = world.rebuild(0, 1, 1);
  ASSERT_FALSE(rebuilt.ok());
  EXPECT_EQ(rebuilt.error().code(), Code::lost);
  EXPECT_NE(
      rebuilt.error().message().find("what node 1 saved cannot be rebuilt: 2 of the 3 blocks"),
      std::string::npos)
      << rebuilt.error().message();
  EXPECT_TRUE(bytes_of(world.network, 0, manifest_of({1, run, 1})).empty());
  world.expect_rest();
}

// With k = 1 a node has all that is needed; the job must only have a second one, which may be
// empty.
TEST(Rebuild, OneNodeThatIsLeftIsEnoughBesideAnEmptyOne) {
  for (const ParityShape shape : {ParityShape{1, 1}, {1, 2}}) {
    const std::uint32_t nodes = shape.members();
    World world(nodes, shape);
    world.save(1);
    world.network.run_for(60 * second);
    std::vector<NodeId> lost;
    for (NodeId node = 1; node < nodes; ++node) lost.push_back(node);
    world.restart(lost);
    for (const NodeId node : lost) {
      const auto rebuilt = world.rebuild(node, 1, node);
      ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
      world.expect_rebuilt({1, run, node});
    }
  }
}

TEST(Rebuild, ADamagedBlockIsNoticedAndMadeUpFor) {
  SCOPED_TRACE(test::replay());
  for (const bool of_parity : {true, false}) {
    World world(4, {2, 2});
    world.save(1);
    world.network.run_for();
    const FileOf damaged{1, run, 2};
    world.damage(2, of_parity ? parity_of(damaged) : segment_of(damaged));
    world.restart({1});
    const auto rebuilt = world.rebuild(3, 1, 1);
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
    world.expect_rebuilt({1, run, 1});
    world.expect_rest();
  }
  // With one block of parity there is no other way: it is said, and nothing wrong is kept.
  World world(4, {3, 1});
  world.save(1);
  world.network.run_for();
  world.damage(2, parity_of({1, run, 2}));
  world.restart({1});
  const auto rebuilt = world.rebuild(0, 1, 1);
  EXPECT_FALSE(rebuilt.ok());
  EXPECT_TRUE(bytes_of(world.network, 0, manifest_of({1, run, 1})).empty());
  world.expect_rest();
}

// Node 1 of a group that bears two losses is lost, perhaps with another one, and node 0 was asked
// for its file.
struct Asked {
  explicit Asked(const std::vector<NodeId>& lost = {1}) {
    world.save(1);
    world.network.run_for();
    world.restart(lost);
    world.network[0].rebuilder->ask(0, {1, run}, 1,
                                    [this](const Result<NodeId>& node) { answer = node; });
  }
  World world{4, {2, 2}};
  std::optional<Result<NodeId>> answer;
};

TEST(Rebuild, AMemberThatDiesWhileItIsRebuilt) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 40; ++round) {
    Asked asked;
    World& world = asked.world;
    const auto& answer = asked.answer;
    world.play_some();
    world.network.kill(3);
    world.network.membership({3}, {});
    world.network.run_for(second);
    ASSERT_TRUE(answer.has_value());
    ASSERT_TRUE(answer->ok()) << answer->error().to_string();
    world.rebuilder = 0;
    world.expect_rebuilt({1, run, 1});
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

// Of the two members that are left one dies: whoever asked hears so, and does not wait for it.
TEST(Rebuild, AMemberThatCannotBeSparedDiesMeanwhile) {
  SCOPED_TRACE(test::replay());
  std::size_t told = 0;
  for (int round = 0; round < 40; ++round) {
    Asked asked({1, 2});
    asked.world.play_some();
    asked.world.network.kill(3);
    asked.world.network.membership({3}, {});
    asked.world.network.run_for(second);
    ASSERT_TRUE(asked.answer.has_value());
    if (!asked.answer->ok()) {
      // lost: its death was known before the rebuilder had looked for blocks.
      const Code code = asked.answer->error().code();
      EXPECT_TRUE(code == Code::agent_lost || code == Code::lost)
          << asked.answer->error().to_string();
      ++told;
    }
    asked.world.expect_rest();
  }
  EXPECT_GT(told, 0u);
}

// All that one member has is damaged, and pieces of the file lie in two stripes: whichever member
// it is, it is left out in both.
TEST(Rebuild, WhoeverIsDamagedIsLeftOut) {
  SCOPED_TRACE(test::replay());
  for (NodeId lost = 0; lost < 5; ++lost) {
    for (NodeId bad = 0; bad < 5; ++bad) {
      if (bad == lost) continue;
      World world(5, {3, 2});
      world.save(1);
      world.network.run_for();
      world.damage(bad, segment_of({1, run, bad}));
      world.restart({lost});
      const auto rebuilt = world.rebuild(0, 1, lost);
      ASSERT_TRUE(rebuilt.ok()) << lost << " " << bad << " " << rebuilt.error().to_string();
      world.expect_rebuilt({1, run, lost});
      world.expect_rest();
    }
  }
}

// No block is left over, but of one of them another agent has a good copy.
TEST(Rebuild, ADamagedHolderHidesNoGoodOne) {
  SCOPED_TRACE(test::replay());
  for (const NodeId bad : {2u, 3u}) {
    World world(4, {3, 1});
    world.save(1);
    world.network.run_for();
    const FileOf file{1, run, 2};
    for (const auto& [name, bytes] : {std::pair{segment_of(file), world.segments[file]},
                                      {manifest_of(file), world.manifests[file]}}) {
      ASSERT_TRUE(io::publish_file(*world.network.disks[3], path_of(name), bytes).ok());
    }
    world.damage(bad, segment_of(file));
    world.restart({1});
    const auto rebuilt = world.rebuild(0, 1, 1);
    ASSERT_TRUE(rebuilt.ok()) << bad << " " << rebuilt.error().to_string();
    world.expect_rebuilt({1, run, 1});
    world.expect_rest();
  }
}

// Who knows what there is dies before it has answered: that is no loss for good.
TEST(Rebuild, WhatIsNotKnownIsNotLost) {
  SCOPED_TRACE(test::replay());
  std::size_t unknown = 0;
  for (int round = 0; round < 40; ++round) {
    Asked asked;
    World& world = asked.world;
    const auto& answer = asked.answer;
    world.play_some(20);
    world.network.kill(1);
    world.network.run_for(second);
    ASSERT_TRUE(answer.has_value());
    if (!answer->ok()) {
      EXPECT_EQ(answer->error().code(), Code::agent_lost) << answer->error().to_string();
      EXPECT_NE(answer->error().message().find("of the 2 blocks"), std::string::npos);
      ++unknown;
    }
    world.expect_rest();
  }
  EXPECT_GT(unknown, 0u);
}

// The version goes while its parity's manifest is read, or while it is looked for.
TEST(Rebuild, AVersionThatIsRemovedMeanwhileDoesNotComeBack) {
  for (const bool looked_for : {false, true}) {
    World world(4, {3, 1});
    world.save(1);
    world.network.run_for();
    world.restart({1});
    Node& node = world.network[0];
    std::optional<Result<NodeId>> answer;
    node.rebuilder->ask(0, {1, run}, 1, [&](const Result<NodeId>& of) { answer = of; });
    const auto reads = [&] {
      return std::ranges::any_of(node.peer_file_commands, [](const PeerFileCommand& one) {
        return std::holds_alternative<ReadFileManifest>(one);
      });
    };
    world.network.run_until(
        "it begins", [&] { return looked_for ? node.rebuilder->under_way() == 1 : reads(); });
    ASSERT_TRUE(tier_on(*world.network.disks[0])->remove("job").ok());
    node.rebuilder->removed(1);
    world.network.run_for(second);
    ASSERT_TRUE(answer.has_value());
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->error().code(), Code::again) << answer->error().to_string();
    EXPECT_TRUE(bytes_of(world.network, 0, manifest_of({1, run, 1})).empty());
    world.expect_rest();
  }
}

TEST(Rebuild, NothingIsAnsweredFromWithinTheCall) {
  World world(3, {2, 1});
  world.save(1);
  world.network.run_for();
  Node& node = world.network[0];
  LivingGroup group;
  group.parity =
      *format::decode_parity_manifest(bytes_of(world.network, 0, parity_manifest_of({1, run, 0})));
  group.members = *format::decode_members(group.parity);
  group.segments.resize(3);
  group.parities.resize(3);
  DegradedReader nobody(*node.stripe_coder, group, 1, 0);
  AlignedMemory memory(4096);
  std::optional<Status> read, made;
  std::optional<Result<Buffer>> manifest;
  nobody.read(0, {}, 0, memory.span(), [&](const Status& status) { read = status; });
  nobody.read_manifest(0, {}, [&](Result<Buffer> bytes) { manifest = std::move(bytes); });
  const std::uint32_t reads[] = {1, 2}, makes[] = {0};
  memory.span()[5] = std::byte{1};
  node.stripe_coder->combine(
      *protect::Combination::make({2, 1}, reads, makes), {{}, {}}, {memory.span()},
      [&](const Status& status, std::optional<std::size_t>) { made = status; });
  EXPECT_FALSE(read || made || manifest);
  world.network.run_for();
  ASSERT_TRUE(read && made && manifest);
  ASSERT_FALSE(read->ok());
  EXPECT_EQ(read->error().code(), Code::lost);
  ASSERT_TRUE(manifest->ok());
  EXPECT_EQ(**manifest, world.manifests[(FileOf{1, run, group.members[1].node})]);
  EXPECT_TRUE(made->ok());
  EXPECT_EQ(memory.span()[5], std::byte{0}) << "of zeros";
}

}  // namespace
}  // namespace backstay::agent
