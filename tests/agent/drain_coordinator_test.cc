// Level durable over several nodes: each its part, in turns; a record when all are there, told once
// it is safe, whatever fails, whoever dies.
#include "agent/drain/drain_coordinator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "agent/drain_world.h"

namespace backstay::agent {
namespace {

using namespace testing;
using Numbers = std::vector<VersionNumber>;

DurableSettings with(std::uint32_t nodes_max, std::uint32_t every = 1, std::uint32_t keep = 2) {
  return {
      .dir = shared_dir, .every = every, .keep = keep, .bytes_per_s = 0, .nodes_max = nodes_max};
}

void expect_told(DrainWorldPlayed& world, VersionNumber version) {
  for (NodeId node = 0; node < world.size(); ++node)
    if (world.lives(node)) {
      EXPECT_TRUE(world[node].told(version)) << "node " << node;
    }
}

TEST(DrainCoordinator, EveryPartAndOneRecordInTurns) {
  SCOPED_TRACE(test::replay());
  for (const std::uint32_t nodes : {2u, 3u, 6u}) {
    for (const std::uint32_t nodes_max : {0u, 1u, 2u}) {
      DrainWorldPlayed world(nodes, with(nodes_max));
      world.save(1), world.run_to_rest();
      world.save(2), world.run_to_rest();
      EXPECT_EQ(world.there(), (Numbers{1, 2}));
      expect_told(world, 2);
      world.expect_rest();
      if (nodes_max != 0) {
        EXPECT_LE(world.writers_max, nodes_max);
      }
      if (nodes_max == 1) continue;
      // By chance the few steps of two nodes may not meet.
      for (VersionNumber version = 3; version < 30 && world.writers_max == 1; ++version) {
        world.save(version), world.run_to_rest();
      }
      EXPECT_GT(world.writers_max, 1u) << "at once";
      EXPECT_TRUE(nodes_max == 0 || world.writers_max <= nodes_max);
    }
  }
}

TEST(DrainCoordinator, EveryNthAndThoseThatSomebodyAnywhereWaitsFor) {
  DrainWorldPlayed world(3, with(1, 3, 5));
  for (VersionNumber version = 1; version <= 4; ++version) world.save(version), world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{3}));
  world[2].wait_durable(4);
  world[2].durability->consider();
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{3, 4}));
  for (VersionNumber version = 5; version <= 7; ++version) world.save(version), world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{3, 4, 7}));
}

// Whenever anybody is told, the shared storage may lose all that is not synced.
TEST(DrainCoordinator, ProgramsOfOneNameOnOtherNodesAreKeptApart) {
  DrainWorldPlayed world(3, with(1));
  world.live(true);
  {
    const auto elsewhere = world.mark();
    ASSERT_TRUE(elsewhere.ok());
    world.save(1), world.run_to_rest();
    EXPECT_EQ(world.there(), Numbers{});
    for (NodeId node = 0; node < 3; ++node) EXPECT_EQ(world[node].why_not(1), Code::busy);
    world.expect_rest();
  }
  world.save(2), world.run_to_rest();
  expect_told(world, 2);
  EXPECT_EQ(world.mark().error().code(), Code::busy);
  world.live(false), world.run_to_rest();
  EXPECT_TRUE(world.mark().ok());
}

// What a run left is copied by agents whose program has ended.
TEST(DrainCoordinator, WithoutAProgramAnotherOneMayLive) {
  DrainWorldPlayed world(2, with(1));
  const auto elsewhere = world.mark();
  world.save(1), world.run_to_rest();
  expect_told(world, 1);
}

TEST(DrainCoordinator, NobodyIsToldEarly) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 40; ++round) {
    DrainWorldPlayed world(4, with(round % 3), random.between(1, 1'000'000));
    world.save(1, 1);
    ASSERT_TRUE(world.run_until([&] {
      for (NodeId node = 0; node < 4; ++node)
        if (world[node].told(1)) return true;
      return false;
    }));
    world.shared->crash(random.between(1, 1'000'000));
    EXPECT_EQ(world.there(), (Numbers{1}));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DrainCoordinator, RetentionRemovesOnceAndTellsAll) {
  DrainWorldPlayed world(3, with(0, 1, 1));
  for (VersionNumber version = 1; version <= 3; ++version) {
    world.save(version), world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{version}));
    const auto durable = std::ranges::count_if(
        world[2].state.versions.rows(), [](const auto& entry) { return entry.second.durable(); });
    EXPECT_EQ(durable, 1);
  }
}

// With a copy of each part elsewhere the version becomes durable all the same; without, the reason
// is told.
TEST(DrainCoordinator, AnyMemberDiesAtAnyInstant) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 120; ++round) {
    const std::uint32_t replicas = round % 2;
    DrainWorldPlayed world(4, with(round % 3), random.between(1, 1'000'000));
    world.save(1, replicas);
    for (auto steps = random.between(0, 150); steps > 0 && world.step(); --steps) continue;
    const auto victim = static_cast<NodeId>(random.between(0, 3));
    world.kill(victim);
    if (random.coin()) world.run_to_rest();
    world.membership({victim}, {});
    world.run_to_rest();
    const bool durable = world.there() == Numbers{1};
    const NodeId witness = victim == 3 ? 2 : 3;
    if (replicas == 1) {
      EXPECT_TRUE(durable) << "round " << round;
    }
    EXPECT_EQ(world[witness].told(1), durable);
    if (!durable) {
      EXPECT_TRUE(world[witness].why_not(1).has_value());
    }
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DrainCoordinator, WhoDiesWithTheTurnLosesIt) {
  SCOPED_TRACE(test::replay());
  for (const std::uint32_t replicas : {0u, 1u}) {
    DrainWorldPlayed world(3, with(1));
    world.save(1, replicas);
    ASSERT_TRUE(world.run_until([&] { return world[1].writes(); }));
    world.kill(1);
    world.membership({1}, {});
    world.run_to_rest();
    EXPECT_EQ(world.there(), replicas == 1 ? Numbers{1} : Numbers{});
    EXPECT_LE(world.writers_max, 1u);
    if (replicas == 0) {
      EXPECT_EQ(world[2].why_not(1), Code::agent_lost);
    }
    world.start(1);
    world.membership({}, {1});
    world.save(2), world.run_to_rest();
    EXPECT_EQ(world.there().back(), 2u) << "the turns go on";
    expect_told(world, 2);
    world.expect_rest();
  }
}

// Copies are made while the version is on its way there: who keeps one stands in although it had
// none when it was asked.
TEST(DrainCoordinator, ACopyThatComesMeanwhileStandsInForWhoDies) {
  SCOPED_TRACE(test::replay());
  for (const std::uint32_t nodes_max : {0u, 1u}) {
    for (const NodeId keeper : {0u, 2u}) {
      DrainWorldPlayed world(3, with(nodes_max));
      world[1].slow = true;
      world.save(1);
      ASSERT_TRUE(world.run_until([&] { return world[1].writes(); }));
      world.copy(1, 1, keeper);
      world.run_to_rest();
      world.kill(1);
      world.membership({1}, {});
      world.run_to_rest();
      EXPECT_EQ(world.there(), (Numbers{1})) << "copy at node " << keeper;
      expect_told(world, 1);
      world.expect_rest();
    }
  }
}

TEST(DrainCoordinator, TheNextOneTakesOverFromTheCoordinator) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 40; ++round) {
    DrainWorldPlayed world(5, with(1), random.between(1, 1'000'000));
    world.save(1, 2);
    for (auto steps = random.between(0, 200); steps > 0 && world.step(); --steps) continue;
    for (const NodeId victim : {0u, 1u}) {
      world.kill(victim);
      for (auto steps = random.between(0, 50); steps > 0 && world.step(); --steps) continue;
      world.membership({victim}, {});
    }
    world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{1})) << "round " << round;
    expect_told(world, 1);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DrainCoordinator, EveryCallOnSharedStorageFailsOnce) {
  SCOPED_TRACE(test::replay());
  for (const NodeId node : {0u, 2u}) {
    for (const io::Fault fault : {io::Fault::io, io::Fault::no_space, io::Fault::permission}) {
      for (std::uint64_t at = 1;; ++at) {
        DrainWorldPlayed world(3, with(at % 3));
        world.start(node, {fault, at});
        world.save(1), world.run_to_rest();
        const std::string where = world[node].faults->chosen();
        const bool durable = world.there() == Numbers{1};
        EXPECT_TRUE(durable || !world[1].told(1)) << where;
        if (where.empty()) break;
        if (!world[1].told(1)) {
          EXPECT_TRUE(world[1].why_not(1).has_value()) << where;
        }
        world.expect_rest();
        world.save(2), world.run_to_rest();
        EXPECT_EQ(world.there().back(), 2u) << "the next one is tried again after " << where;
        expect_told(world, 2);
        EXPECT_EQ(world.folders().size(), world.there().size()) << "the rest is cleared " << where;
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(DrainCoordinator, ASlowNodeHoldsNobodyUpButTheVersion) {
  DrainWorldPlayed world(4, with(2));
  world[1].slow = true;
  world.save(1);
  ASSERT_TRUE(world.run_until([&] { return world[1].writes(); }));
  world.run_to_rest();
  EXPECT_EQ(world.there(), Numbers{});
  EXPECT_EQ(world.folders().size(), 1u);
  EXPECT_FALSE(world[2].writes() || world[3].writes()) << "they have had their turns";
  EXPECT_FALSE(world[3].told(1));
  world[1].slow = false;
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{1}));
  expect_told(world, 1);
}

// It was taken for dead in its turn, and goes on long after the version was finished by others, or
// was removed.
TEST(DrainCoordinator, AnAgentThatWasStoppedDoesNoHarm) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 40; ++round) {
    const NodeId stopped = round % 2 == 0 ? 2 : 0;  // a member, or the coordinator
    DrainWorldPlayed world(3, with(1, 1, 1), random.between(1, 1'000'000));
    world.save(1, 1);
    ASSERT_TRUE(world.run_until([&] { return world[stopped].writes(); }));
    for (auto steps = random.between(0, 6); steps > 0 && world.step(); --steps) continue;
    world[stopped].stopped = true;
    for (NodeId other = 0; other < 3; ++other)
      if (other != stopped) world.cut(stopped, other);
    world.membership({stopped}, {});
    world.run_to_rest();
    // The lock of a coordinator that hangs is a lock: the version waits for it, or for the next
    // run.
    if (stopped == 2) {
      EXPECT_EQ(world.there(), (Numbers{1}));
    }
    world[stopped].stopped = false;
    world.run_to_rest();
    if (stopped == 2) {
      EXPECT_EQ(world.there(), (Numbers{1})) << "round " << round;
    }
    world.membership({}, {stopped});
    world.save(2), world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{2}));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DrainCoordinator, TwoWhoTakeThemselvesForTheCoordinator) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 40; ++round) {
    DrainWorldPlayed world(4, with(1), random.between(1, 1'000'000));
    world.save(1, 3);
    for (auto steps = random.between(0, 100); steps > 0 && world.step(); --steps) continue;
    for (const NodeId a : {0u, 1u})
      for (const NodeId b : {2u, 3u}) world.cut(a, b);
    for (const NodeId a : {0u, 1u})
      world[a].durability->coordinator()->membership(std::vector<NodeId>{2, 3}, {});
    for (const NodeId b : {2u, 3u})
      world[b].durability->coordinator()->membership(std::vector<NodeId>{0, 1}, {});
    world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{1})) << "one of them did it";
    world.expect_rest();
    world.membership({}, {0, 1, 2, 3});
    world.save(2), world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{1, 2}));
    expect_told(world, 2);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DrainCoordinator, ADamagedPartIsCopiedFromAnotherNodeOrNotAtAll) {
  for (const std::uint32_t replicas : {0u, 1u}) {
    DrainWorldPlayed world(3, with(0));
    for (NodeId node = 0; node < 3; ++node)
      world.write(node, 1,
                  replicas == 1 ? std::vector<NodeId>{(node + 1) % 3} : std::vector<NodeId>{});
    world.damage(1, 1);
    world.local(1);
    world.run_to_rest();
    EXPECT_EQ(world.there(), replicas == 1 ? Numbers{1} : Numbers{});
    if (replicas == 0) {
      EXPECT_EQ(world[2].why_not(1), Code::corrupt);
    }
    world.expect_rest();
  }
}

// Another node still writes its part when a version is given up.
TEST(DrainCoordinator, AfterAVersionThatWasGivenUpTheNextOneComesByItself) {
  DrainWorldPlayed world(3, with(2));
  world.save(1);
  world.damage(0, 1);
  world[1].slow = true;
  ASSERT_TRUE(world.run_until([&] { return world[1].writes(); }));
  world.save(2);
  for (const NodeId node : {0u, 2u}) world[node].wait_durable(2);
  world.run_to_rest();
  EXPECT_EQ(world[2].why_not(1), Code::corrupt);
  world[1].slow = false;
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{2}));
  expect_told(world, 2);
  world.expect_rest();
}

// On other nodes, fewer or more, with the parts on whatever disks they are.
TEST(DrainCoordinator, WhatIsLeftIsCopiedByTheNextRun) {
  SCOPED_TRACE(test::replay());
  for (const auto& [nodes, disks] :
       {std::pair<std::uint32_t, std::vector<NodeId>>{2, {2, 1}}, {4, {0, 2}}, {3, {2, 0, 1}}}) {
    DrainWorldPlayed world(3, with(0, 1, 1));
    world.save(1), world.run_to_rest();
    world.settings.dir = "";  // nobody copies
    world.begin_run(3, 77, {0, 1, 2});
    world.settings = with(0, 1, 1);
    for (NodeId node = 0; node < 3; ++node) world.write(node, 2, {(node + 1) % 3});
    world.begin_run(nodes, 78, disks);
    world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{1, 2})) << "a restart may still read the older one";
    expect_told(world, 2);
    world.save(3), world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{3}));
    world.expect_rest();
  }
}

TEST(DrainCoordinator, LeftoversAreClearedByTheNextRun) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 50; ++round) {
    DrainWorldPlayed world(3, with(1), random.between(1, 1'000'000));
    world.save(1);
    for (auto steps = random.between(20, 120); steps > 0 && world.step(); --steps) continue;
    for (NodeId node = 0; node < 3; ++node) world.kill(node);
    world.shared->crash(random.between(1, 1'000'000));
    const bool durable = world.there() == Numbers{1};
    world.begin_run(3, 79);  // with empty disks
    world.save(2), world.run_to_rest();
    EXPECT_EQ(world.there(), durable ? (Numbers{1, 2}) : (Numbers{2}));
    EXPECT_EQ(world.folders().size(), world.there().size());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(DrainCoordinator, AMissingDirectoryIsSaidAndNeverMade) {
  DrainWorldPlayed world(2, {.dir = "/gone"});
  world.save(1), world.run_to_rest();
  EXPECT_EQ(world[1].why_not(1), Code::io);
  EXPECT_FALSE(world.shared->list("/gone").ok());
  world.expect_rest();
}

TEST(DrainCoordinator, ANodeThatWasToldOfNoDirectoryIsSaid) {
  DrainWorldPlayed world(3, {});
  for (const NodeId node : {0u, 2u}) {
    world.settings = with(0);
    world.start(node);
  }
  world.save(1), world.run_to_rest();
  EXPECT_EQ(world[2].why_not(1), Code::io);
  EXPECT_EQ(world.there(), Numbers{});
  world.expect_rest();
}

}  // namespace
}  // namespace backstay::agent
