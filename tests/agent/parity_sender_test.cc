// Blocks of parity that a member makes for others of its group: each is made once and sent once;
// who is not handed its block makes it by itself, whatever the reason, and nobody waits for ever.
#include <gtest/gtest.h>

#include "agent/parity_world.h"
#include "protect/stripes.h"

namespace backstay::agent {
namespace {

using namespace testing;
using World = ParityWorld;

protect::Stripes stripes_of(World& world, ParityShape shape) {
  std::vector<std::uint64_t> lengths;
  for (NodeId node = 0; node < world.network.members(); ++node) {
    lengths.push_back(world.segments[{1, run, node}].size());
  }
  return {shape, std::move(lengths)};
}

// What a node pulls for one version: the data of its stripe, the parities that others make for it,
// and their manifests.
std::uint64_t planned_bytes(World& world, const protect::Stripes& stripes, NodeId node) {
  const ParityShape shape = stripes.shape();
  std::uint64_t bytes = (shape.parity - 1) * stripes.block_bytes();
  for (std::uint32_t index = shape.parity; index < shape.members(); ++index) {
    bytes += stripes.block(node, index).bytes;
  }
  for (NodeId other = 0; other < world.network.members(); ++other) {
    if (other != node) bytes += world.manifests[{1, run, other}].size();
  }
  return bytes;
}

// All have told version 1, nothing is under way any more, and what the first of `lost` saved comes
// back without their disks.
void expect_good(World& world, const std::vector<NodeId>& lost, NodeId asking) {
  world.expect_told(1);
  world.expect_rest();
  world.restart(lost);
  ASSERT_TRUE(world.rebuild(asking, 1, lost.front()).ok());
  world.expect_rebuilt({1, run, lost.front()});
}

TEST(ParitySender, EachBlockIsMadeOnceAndSentOnce) {
  SCOPED_TRACE(test::replay());
  for (const ParityShape shape : {ParityShape{3, 1}, {2, 2}, {1, 2}, {2, 4}, {6, 2}}) {
    World world(shape.members(), shape);
    world.save(1, [](NodeId node) { return 9 + node % 2; });
    world.network.run_for();
    world.expect_told(1);
    const protect::Stripes stripes = stripes_of(world, shape);
    for (NodeId node = 0; node < world.network.members(); ++node) {
      EXPECT_EQ(world.network.pulled_bytes[node], planned_bytes(world, stripes, node))
          << node << " of (" << shape.data << ", " << shape.parity << ")";
    }
    world.expect_rest();
  }
}

// A member that does not work on the version delays the others for seconds, and that is all.
TEST(ParitySender, WhoDoesNotWorkOnItIsNotWaitedForForEver) {
  SCOPED_TRACE(test::replay());
  for (const ParityShape shape : {ParityShape{2, 2}, {1, 3}}) {
    World world(4, shape);
    for (NodeId node = 0; node < 4; ++node) world.write(node, 1, 40);
    for (const NodeId node : {0u, 1u, 2u}) world.record(node, 1);
    world.network.run_for(5 * second);
    for (const NodeId node : {0u, 1u, 2u}) EXPECT_TRUE(world.told(node, 1)) << node;
    world.expect_rest();
    world.record(3, 1);  // nobody makes anything for it any more
    world.network.run_for(5 * second);
    world.expect_told(1);
    world.expect_rest();
    world.restart({0, 3});
    for (const NodeId node : {0u, 3u}) {
      ASSERT_TRUE(world.rebuild(1, 1, node).ok());
      world.expect_rebuilt({1, run, node});
    }
  }
}

TEST(ParitySender, OneBufferIsEnough) {
  World world(4, {2, 2}, 0, /*buffers=*/1);
  world.save(1);
  world.network.run_for();
  expect_good(world, {1, 2}, 0);
}

TEST(ParitySender, ACableIsCutMeanwhile) {
  SCOPED_TRACE(test::replay());
  std::size_t early = 0;
  for (int round = 0; round < 40; ++round) {
    World world(4, {2, 2});
    world.save(1);
    world.play_some();
    const auto one = static_cast<NodeId>(world.network.random().between(0, 3));
    if (!world.told(one, 1)) ++early;
    world.network.cut(one, (one + 1) % 4);
    world.network.run_for(120 * second);
    expect_good(world, {one, (one + 2) % 4}, 3 - one);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(early, 0u);
}

// All members fail at one instant while they make version 1, each with something asked of one that
// has failed too.
void fail_together(World& world) {
  world.save(1, [](NodeId) { return 30u; });
  world.network.run_until("all have begun", [&] {
    for (NodeId node = 0; node < 4; ++node) {
      if (world.network[node].stripe_coder->under_way() == 0) return false;
    }
    return true;
  });
  world.network.cut(0, 2);
  world.network.cut(1, 3);
}

TEST(ParitySender, MembersThatFailTogetherDoNotWaitForEachOther) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 40; ++round) {
    World world(4, {2, 2});
    fail_together(world);
    world.network.run_for(120 * second);
    world.expect_told(1);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

// What failed on all members is tried again by all after half a minute, when another version may be
// half done. A member that worked on both would hold slices of each for others that wait for the
// other one.
TEST(ParitySender, AnOlderVersionThatIsTriedAgainWaitsForTheOneThatIsMade) {
  SCOPED_TRACE(test::replay());
  std::size_t half_done = 0;
  for (int round = 0; round < 40; ++round) {
    World world(4, {2, 2});
    fail_together(world);
    world.network.run_for(second);
    world.save(2, [](NodeId) { return 30u; });
    world.play_some(300);
    for (NodeId node = 0; node < 4; ++node) {
      Node& one = world.network[node];
      if (!one.parity_encoder->blockers().empty() && one.state.versions.is_pinned(2)) ++half_done;
    }
    bool two_at_once = false;
    world.network.after_step = [&] {
      for (NodeId node = 0; node < 4; ++node) {
        if (world.network[node].pinned().size() > 1) two_at_once = true;
      }
    };
    world.network.membership({}, {});  // what failed is tried again now
    world.network.run_for(120 * second);
    EXPECT_FALSE(two_at_once);
    for (const VersionNumber version : {1, 2}) world.expect_told(version);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(half_done, 0u);
}

// An agent that dies and is back before anybody has said so: its new life asks for what the old one
// was given.
TEST(ParitySender, AnAgentThatComesBackAtOnce) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 40; ++round) {
    World world(4, {2, 2});
    world.save(1);
    world.play_some();
    world.network.kill(1);
    world.network.start(1);
    world.network.run_for(120 * second);
    expect_good(world, {3, 1}, 0);
    if (::testing::Test::HasFailure()) return;
  }
}

// Whatever is asked for is answered, and keeps no memory.
TEST(ParitySender, NonsenseIsRefused) {
  SCOPED_TRACE(test::replay());
  AlignedMemory memory(buffer_bytes);
  for (const bool early : {true, false}) {
    World world(4, {2, 2});
    if (!early) {
      world.save(1);
      world.network.run_for();
    }
    std::vector<std::string> answers;
    const auto ask = [&](VersionNumber version, std::uint64_t offset, std::size_t bytes) {
      world.network[1].transfers->read(
          0, {version, run, 1, /*parity=*/true}, offset, memory.span().first(bytes),
          [&](const Status& status) {
            answers.push_back(status.ok() ? "ok" : status.error().to_string());
          });
    };
    ask(1, 4096 * 1'000'000ull, 4096);
    ask(1, 0, buffer_bytes);
    ask(7, 0, 4096);
    if (early) world.save(1);
    world.network.run_for(5 * second);
    ASSERT_EQ(answers.size(), 3u);
    for (const std::string& answer : answers) EXPECT_NE(answer.find("node 0: "), std::string::npos);
    world.expect_told(1);
    world.expect_rest();
  }
}

// Many more than are answered at once wait; the rest is told so.
TEST(ParitySender, AFloodOfQuestionsIsBounded) {
  World world(4, {2, 2});
  AlignedMemory memory(4096);
  std::size_t again = 0, refused = 0;
  for (std::uint64_t at = 0; at < ParitySender::asked_max + 10; ++at) {
    world.network[1].transfers->read(
        0, {7, run, 1, true}, at * 4096, memory.span(),
        [&](const Status& status) { ++(status.error().code() == Code::again ? again : refused); });
  }
  world.network.run_for(5 * second);
  EXPECT_EQ(again, 10u);
  EXPECT_EQ(refused, ParitySender::asked_max);
  world.expect_rest();
}

}  // namespace
}  // namespace backstay::agent
