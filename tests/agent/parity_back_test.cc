// An agent that died and is back within its run goes on with the parity of what its disk has.
#include <gtest/gtest.h>

#include "agent/parity_world.h"
#include "store/catalog.h"

namespace backstay::agent {
namespace {

using namespace testing;
using World = ParityWorld;

// It goes on where its earlier life was killed, and says what that may not have said; others need
// not have noticed.
TEST(Parity, AnAgentThatIsBackGoesOn) {
  SCOPED_TRACE(test::replay());
  std::size_t early = 0, made = 0, late = 0;  // than it was there, and told
  for (int round = 0; round < 40; ++round) {
    World world(4, {3, 1});
    world.save(1);
    world.play_some();
    const bool told = world.told(2, 1);
    world.network.kill(2);
    const bool there = !bytes_of(world.network, 2, parity_manifest_of({1, run, 2})).empty();
    ++(told ? late : there ? made : early);
    EXPECT_TRUE(there || !told);
    world.network.start(2);
    world.network.run_for(there ? 0 : 60 * second);
    EXPECT_TRUE(world.told(2, 1));
    world.network.run_for(60 * second);
    world.expect_told(1);
    world.expect_rest();
    const auto lost = static_cast<NodeId>(world.network.random().between(0, 3));
    world.restart({lost});
    const auto rebuilt = world.rebuild(lost, 1, lost);
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
    world.expect_rebuilt({1, run, lost});
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(early, 0u);
  EXPECT_GT(late, 0u);
}

// What an agent that died had on the disk is told only once it is synced; where that fails, parity
// is made anew.
TEST(Parity, WhatAnEarlierAgentMadeIsSyncedFirst) {
  for (const bool fails : {false, true}) {
    World world(3, {2, 1});
    world.save(1);
    world.network.run_for();
    Node& before = world.network[0];
    const auto is_sync = [](const PeerFileCommand& one) {
      return std::holds_alternative<SyncFile>(one);
    };
    EXPECT_TRUE(std::ranges::none_of(before.peer_file_commands, is_sync));
    world.network.start(0);
    Node& node = world.network[0];
    world.network.run_until("it is to be synced",
                            [&] { return std::ranges::any_of(node.peer_file_commands, is_sync); });
    EXPECT_FALSE(world.told(0, 1));
    const FileOf file{1, run, 0};
    if (fails) {
      ASSERT_TRUE(world.network.disks[0]->remove(path_of(parity_of(file))).ok());
    }
    world.network.run_for(second);
    EXPECT_TRUE(world.told(0, 1));
    EXPECT_FALSE(bytes_of(world.network, 0, parity_of(file)).empty());
    world.expect_rest();
  }
}

TEST(Parity, AnAgentThatIsBackSaysWhatOlderVersionsStillBear) {
  World world(3, {2, 1});
  world.save(1);
  world.network.run_for();
  auto tier = tier_on(*world.network.disks[0]);
  format::CommitRecord record = store::look_at(*tier, "job", 1).record;
  record.level = Level::protected_;
  ASSERT_TRUE(tier->put(format::commit_name(format::version_folder("job", 1), record.level),
                        format::encode(record))
                  .ok());
  world.network.start(0);
  world.network.run_for();
  EXPECT_FALSE(world.told(0, 1)) << "all know it";
  world.network.membership({2}, {});
  EXPECT_TRUE(world.network[0].logged("parity_weakened"));
}

}  // namespace
}  // namespace backstay::agent
