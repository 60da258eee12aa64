// An agent that died and is back within its run: it goes on with what its disk has, and looks after
// what it keeps for others.
#include <gtest/gtest.h>

#include "agent/protected_world.h"
#include "store/catalog.h"

namespace backstay::agent {
namespace {

using namespace testing;
using World = ProtectedWorld;

// It goes on where its earlier life was killed, and says what that may not have said; others need
// not have noticed.
TEST(Replicas, AnAgentThatIsBackGoesOn) {
  SCOPED_TRACE(test::replay());
  std::size_t early = 0, late = 0;
  for (int round = 0; round < 40; ++round) {
    World world(4, 2);
    const FileOf file = world.save(0, 1, 3);
    world.network.pump_all();
    for (auto left = world.network.random().between(0, 250); left > 0; --left) {
      world.network.step();
      world.network.pump_all();
    }
    ++(world.told(0, 1) ? late : early);
    world.network.kill(0);
    world.network.start(0);
    world.network.run_for(60 * second);
    EXPECT_TRUE(world.told(0, 1));
    EXPECT_EQ(world.copies(file), 3u);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(early, 0u);
  EXPECT_GT(late, 0u);
}

// Of what it keeps for another node, too.
TEST(Replicas, AKeeperThatIsBackLooksAfterWhatALostNodeHad) {
  World world(4, 1);
  const FileOf file = world.save(0, 1);
  world.network.run_for();
  NodeId keeper = 1;
  while (bytes_of(world.network, keeper, manifest_of(file)).empty()) ++keeper;
  auto tier = tier_on(*world.network.disks[keeper]);
  format::CommitRecord record = store::look_at(*tier_on(*world.network.disks[0]), "job", 1).record;
  for (const Level level : {Level::local, Level::protected_}) {
    record.level = level;
    ASSERT_TRUE(tier->put(format::commit_name(format::version_folder("job", 1), level),
                          format::encode(record))
                    .ok());
  }
  world.network.start(keeper);
  world.network.run_for(second);
  EXPECT_EQ(world.copies(file), 2u) << "its owner lives";
  world.network.kill(0);
  world.network.membership({0}, {});
  world.network.run_for(second);
  EXPECT_EQ(world.copies(file), 2u) << "another copy took the place of the owner's";
  world.expect_rest();
}

// Who removed its part of a version, and is asked to keep another node's, would take it for
// protected on all nodes.
TEST(Replicas, ACopyDoesNotSayThatAllNodesHaveRecordedItsVersion) {
  World world(2, 1);
  const FileOf file = world.write(0, 1);
  format::CommitRecord record = store::look_at(*tier_on(*world.network.disks[0]), "job", 1).record;
  record.level = Level::protected_;
  world.seal(file);
  world.network[0].replicator->recorded(record);
  world.network.run_for();
  EXPECT_EQ(world.copies(file), 2u);
  EXPECT_EQ(store::look_at(*tier_on(*world.network.disks[1]), "job", 1).level, Level::local);
}

// Its new holder is to leave it alone as the others do.
TEST(Replicas, ACopyOfWhatIsAnnouncedSaysSo) {
  World world(2, 1);
  const FileOf file = world.write(0, 1);
  format::CommitRecord record = store::look_at(*tier_on(*world.network.disks[0]), "job", 1).record;
  record.level = Level::protected_;
  world.network[0].state.versions.found({1, record.level, record}, Where::disk);
  world.seal(file);
  world.network[0].replicator->recorded(record);
  world.network.run_for();
  EXPECT_EQ(store::look_at(*tier_on(*world.network.disks[1]), "job", 1).level, Level::protected_);
}

}  // namespace
}  // namespace backstay::agent
