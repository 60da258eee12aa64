// Level durable on one node: the steps of several, without other agents.
#include <gtest/gtest.h>

#include "agent/drain_world.h"

namespace backstay::agent::testing {
namespace {

class DrainAlone : public ::testing::Test {
 protected:
  using Numbers = std::vector<VersionNumber>;
  static DurableSettings with(std::uint32_t nodes_max, std::uint32_t every = 1,
                              std::uint32_t keep = 2) {
    return {
        .dir = shared_dir, .every = every, .keep = keep, .bytes_per_s = 0, .nodes_max = nodes_max};
  }
};

TEST_F(DrainAlone, TakesTheSameSteps) {
  SCOPED_TRACE(test::replay());
  DrainWorldPlayed world(1, with(0, 1, 2));
  for (const VersionNumber version : {1, 2, 3}) {
    world.save(version), world.run_to_rest();
    EXPECT_TRUE(world[0].told(version));
  }
  EXPECT_EQ(world.there(), (Numbers{2, 3}));
  world.expect_rest();
}

TEST_F(DrainAlone, ACopyGoesOnInTheNextRun) {
  DrainWorldPlayed world(1, with(0));
  world.save(1);
  ASSERT_TRUE(world.run_until([&] { return world[0].writes(); }));
  world[0].durability->open(world.settings, 1);
  EXPECT_EQ(world[0].durability->copying(), 1u);
  EXPECT_TRUE(world[0].writes());
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{1}));
  world.expect_rest();
  world.save(2);
  ASSERT_TRUE(world.run_until([&] { return world[0].writes(); }));
  world.settings.dir = "/gone";  // another directory: it ends
  world[0].durability->open(world.settings, 1);
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{1}));
  world.expect_rest();
}

// As in a run of several: what a version needs is copied first, and stays as long as it.
TEST_F(DrainAlone, WhatAVersionNeedsGoesBeforeIt) {
  SCOPED_TRACE(test::replay());
  for (const std::uint32_t nodes : {1, 3}) {
    SCOPED_TRACE(nodes);
    DrainWorldPlayed world(nodes, with(0, 3, 1));
    world.save(1);
    world.save(2, 0, 1);
    world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{}));  // every third is copied
    world.save(3, 0, 2);
    world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{1, 2, 3}));
    EXPECT_EQ(world[0].state.versions.find(3)->shared->record.needs,
              (std::vector<format::Need>{{2, world.run}}));
    world.save(6);
    world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{6}));
    world.expect_rest();
  }
}

// Nor is one given up for good that a newer one needs.
TEST_F(DrainAlone, WhatAVersionNeedsIsTriedAgainForTheNextOne) {
  SCOPED_TRACE(test::replay());
  for (std::uint64_t at = 1;; ++at) {
    DrainWorldPlayed world(1, with(0, 3, 1));
    world.start(0, {io::Fault::no_space, at});
    world.save(1), world.save(2, 0, 1), world.save(3, 0, 2), world.run_to_rest();
    const std::string where = world[0].faults->chosen();
    const bool all_there = world.there() == Numbers{1, 2, 3};
    EXPECT_TRUE(all_there || world[0].why_not(3)) << where << ": who waits for it hears why";
    if (where.empty()) break;
    world.save(6, 0, 3), world.run_to_rest();
    EXPECT_EQ(world.there(), (Numbers{1, 2, 3, 6})) << where;
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

// The other way round, a node alone has only a part of what several wrote: it leaves that alone.
TEST_F(DrainAlone, ItsVersionIsCopiedByARunOfSeveral) {
  DrainWorldPlayed world(1, {});
  world.save(1);
  world.settings = with(0);
  world.begin_run(2, 78, {0});
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{1}));
  EXPECT_TRUE(world[0].told(1) && world[1].told(1));
  world.settings = {};
  world.begin_run(2, 79, {0, 1});
  world.save(2);
  world.settings = with(0);
  world.begin_run(1, 80, {0});
  world.run_to_rest();
  EXPECT_EQ(world.there(), (Numbers{1}));
  EXPECT_FALSE(world[0].state.versions.last_not_copied());
  world.expect_rest();
}

// Nothing is left there but whole versions, at once: they take room that the next one needs.
TEST_F(DrainAlone, NothingIsLeftOfACopyThatFailed) {
  SCOPED_TRACE(test::replay());
  for (std::uint64_t at = 1;; ++at) {
    DrainWorldPlayed world(1, with(0));
    world.start(0, {io::Fault::no_space, at});
    world.save(1), world.run_to_rest();
    const std::string where = world[0].faults->chosen();
    EXPECT_EQ(world.folders().size(), world.there().size()) << where;
    EXPECT_EQ(world[0].told(1), world.there() == Numbers{1}) << where;
    if (where.empty()) break;
    world.save(2), world.run_to_rest();
    EXPECT_TRUE(world[0].told(2)) << where;
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace backstay::agent::testing
