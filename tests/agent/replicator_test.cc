// Level protected over a played network: copies are the same bytes, it is told only when all are
// there for good, and whatever fails ends in another keeper or in a reason.
#include "agent/redundancy/replicator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "agent/protected_world.h"
#include "store/catalog.h"

namespace backstay::agent {
namespace {

using namespace testing;
using World = ProtectedWorld;

// Node 0 of two wants its file of version 1 kept.
wire::peer::Keep keep_message(std::uint64_t segment_bytes) {
  wire::peer::Keep keep;
  keep.version = 1;
  keep.run = run;
  keep.segment_bytes = segment_bytes;
  keep.nodes = 2;
  keep.ranks = 2;
  return keep;
}

TEST(Replicas, NoneOnOneNodeAndFewerThanNodes) {
  EXPECT_TRUE(check_replicas(1, 1).ok());
  EXPECT_TRUE(check_replicas(5, 1).ok());
  EXPECT_TRUE(check_replicas(1, 2).ok());
  const Status refused = check_replicas(3, 3);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::few_nodes);
  EXPECT_NE(refused.error().message().find("set it to 2 or less"), std::string::npos);
  World alone(1);
  alone.save(0, 1);
  alone.network.run_for(60 * second);
  EXPECT_TRUE(alone.network[0].told.empty());
  alone.expect_rest();
}

TEST(Replicas, AreTheSameBytesOnAsManyNodes) {
  SCOPED_TRACE(test::replay());
  for (const auto& [nodes, replicas] : {std::pair{2u, 1u}, {3u, 1u}, {4u, 2u}, {6u, 3u}}) {
    World world(nodes, replicas);
    for (VersionNumber version = 1; version <= 3; ++version) world.save_everywhere(version);
    world.network.run_for();
    for (const auto& [file, segment] : world.segments) {
      EXPECT_EQ(world.copies(file), replicas + 1) << file.version << " of " << file.node;
      EXPECT_TRUE(world.told(file.node, file.version));
    }
    for (NodeId node = 0; node < nodes; ++node) {
      EXPECT_EQ(world.network[node].kept_files.size(), 3 * replicas) << "balanced";
    }
    world.expect_rest();
  }
}

TEST(Replicas, LieInOtherDomains) {
  const std::vector<std::string> domains = {"a", "a", "b", "b", "c", "c"};
  World world(6, 2, 0, domains);
  world.save_everywhere(1);
  world.network.run_for();
  for (const auto& [file, segment] : world.segments) {
    std::set<std::string> seen;
    for (NodeId disk = 0; disk < 6; ++disk)
      if (!bytes_of(world.network, disk, manifest_of(file)).empty()) seen.insert(domains[disk]);
    EXPECT_EQ(seen.size(), 3u);
  }
}

TEST(Replicas, WhereDomainsDoNotSufficeItIsSaidWhichRuleWasRelaxed) {
  World world(3, 1, 0, {"rack", "rack", "rack"});
  for (NodeId node = 0; node < 3; ++node) {
    EXPECT_TRUE(world.network[node].logged("domains_relaxed"));
    EXPECT_TRUE(world.network[node].logged("should lie in different failure domains"));
  }
  world.save_everywhere(1);
  world.network.run_for();
  EXPECT_TRUE(world.told(0, 1)) << "protected all the same";
  World good(3, 1, 0, {"a", "b", "c"});
  EXPECT_FALSE(good.network[0].logged("domains_relaxed"));
}

// At the instant when a version is told, every other machine may stop.
TEST(Replicas, AreSyncedWhenItIsTold) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 60; ++round) {
    World world(4, 2);
    const auto instant = random.between(1, 4);
    for (NodeId node = 0; node < 4; ++node) world.save(node, 1, 3);
    std::size_t told = 0;
    NodeId by = 0;
    const auto count = [&] {
      told = 0;
      for (NodeId node = 0; node < 4; ++node) {
        if (told < instant && !world.network[node].told.empty()) by = node;
        told += world.network[node].told.size();
      }
      return told >= instant;
    };
    world.network.run_until("it is told", count);
    for (NodeId node = 0; node < 4; ++node) world.network.kill(node);
    EXPECT_EQ(world.copies({1, run, by}, false), 3u);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Replicas, AFullDiskSendsThemElsewhere) {
  World world(3, 1);
  // Both others in turn: one of them is asked first.
  for (const NodeId full : {1u, 2u}) {
    world.network.lose_disk(full, {.capacity_bytes = 4 * buffer_bytes});
    world.network.start(full);
    const FileOf next = world.save(0, 10 + full);
    world.network.run_for();
    EXPECT_TRUE(world.told(0, next.version));
    EXPECT_EQ(world.copies(next), 2u);
    EXPECT_EQ(world.network.disks[full]->used_bytes(), 0u);
    world.network.lose_disk(full);
    world.network.start(full);
  }
  world.expect_rest();
}

TEST(Replicas, WhereAllDisksAreFullTheReasonIsSaidAndItIsTriedAgain) {
  World world(3, 1);
  for (const NodeId full : {1u, 2u}) {
    world.network.lose_disk(full, {.capacity_bytes = 4 * buffer_bytes});
    world.network.start(full);
  }
  const FileOf file = world.save(0, 1);
  world.network[0].state.versions.found({2, Level::local}, Where::disk);
  world.network.run_for(second);
  EXPECT_FALSE(world.told(0, 1));
  ASSERT_TRUE(world.network[0].replicator->blockers(1).has_value());
  EXPECT_EQ(world.network[0].replicator->blockers(1)->code(), Code::no_space);
  EXPECT_TRUE(world.network[0].logged("protect_failed")) << "a newer version changes nothing";
  world.expect_rest();
  world.network.lose_disk(2);
  world.network.start(2);
  world.network.run_for(60 * second);
  EXPECT_TRUE(world.told(0, 1));
  EXPECT_FALSE(world.network[0].replicator->blockers(1).has_value());
  EXPECT_EQ(world.copies(file), 2u);
  world.expect_rest();
}

TEST(Replicas, TooFewNodesUntilOneComesBack) {
  World world(3, 2);
  world.network.kill(1);
  world.network.membership({1}, {});
  const FileOf file = world.save(0, 1);
  world.network.run_for(second);
  EXPECT_FALSE(world.told(0, 1));
  const auto blockers = world.network[0].replicator->blockers(1);
  ASSERT_TRUE(blockers.has_value());
  EXPECT_NE(blockers->message().find("1 of 2 copies on other nodes, 2 of 3 nodes live"),
            std::string::npos)
      << blockers->message();
  world.network.start(1);
  world.network.membership({}, {1});
  world.network.run_for(second);
  EXPECT_TRUE(world.told(0, 1));
  EXPECT_EQ(world.copies(file), 3u);
  world.expect_rest();
}

TEST(Replicas, ADamagedFileIsNeverCalledProtected) {
  World world(4, 1);
  const FileOf file = world.write(0, 1);
  Buffer wrong = world.segments[file];
  wrong[5000] ^= std::byte{1};
  ASSERT_TRUE(io::publish_file(*world.network.disks[0], path_of(segment_of(file)), wrong).ok());
  world.seal(file);
  world.network.run_for(second);
  EXPECT_FALSE(world.told(0, 1));
  ASSERT_TRUE(world.network[0].replicator->blockers(1).has_value());
  EXPECT_EQ(world.network[0].replicator->blockers(1)->code(), Code::corrupt);
  for (NodeId disk = 1; disk < 4; ++disk)
    EXPECT_EQ(world.network.disks[disk]->used_bytes(), 0u) << "its rest was removed";
  world.expect_rest();
}

// Each call of the owner's disk goes wrong once: a bit that flips on the way is read a second time.
TEST(Replicas, TroubleThatPassesAtTheOwner) {
  SCOPED_TRACE(test::replay());
  for (const io::Fault fault : {io::Fault::flip, io::Fault::io}) {
    for (std::uint64_t at = 1;; ++at) {
      World world(3, 1);
      world.network[0].faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
      world.network[0].files =
          io::make_faulty_filesystem(*world.network.disks[0], world.network[0].faults);
      const FileOf file = world.save(0, 1, 3);
      world.network.run_for();
      const std::string chosen = world.network[0].faults->chosen();
      if (chosen.empty()) break;
      EXPECT_TRUE(world.told(0, 1)) << chosen;
      EXPECT_GE(world.copies(file), 2u) << chosen;
      world.expect_rest();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Replicas, AVersionThatIsRemovedMeanwhileIsNoMatter) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 60; ++round) {
    World world(3, 2);
    const FileOf file = world.save(0, 1);
    world.network.pump_all();
    for (auto left = world.network.random().between(0, 120); left > 0; --left) {
      world.network.step();
      world.network.pump_all();
    }
    const bool told = world.told(0, 1);
    ASSERT_TRUE(tier_on(*world.network.disks[0])->remove("job").ok());
    world.network[0].replicator->removed(1);
    world.network.run_for(second);
    EXPECT_EQ(world.told(0, 1), told);
    EXPECT_FALSE(world.network[0].replicator->blockers(1).has_value());
    EXPECT_FALSE(world.network[0].logged("protect_failed"));
    world.copies(file);
    world.expect_rest();
  }
}

// Retention was quicker than the keepers.
TEST(Replicas, AVersionThatNewerOnesHaveOvertakenIsNoTroubleInTheLog) {
  enum { on_disk, in_doubt, none };
  for (const auto where : {on_disk, in_doubt, none}) {
    const bool newer = where != none;
    World world(3, 1);
    const FileOf file = world.write(0, 1);
    ASSERT_TRUE(tier_on(*world.network.disks[0])->remove("job").ok());
    JobState& state = world.network[0].state;
    StoredVersion two{2, where == on_disk ? Level::local : Level::none};
    two.in_doubt = where == in_doubt;
    if (newer) state.versions.found(two, Where::disk);
    world.seal(file);
    world.network.run_for(second);
    ASSERT_TRUE(world.network[0].replicator->blockers(1).has_value()) << "who waits hears it";
    EXPECT_EQ(world.network[0].replicator->blockers(1)->code(), Code::not_found);
    EXPECT_EQ(world.network[0].logged("protect_failed"), !newer);
    EXPECT_EQ(world.network[0].logged(R"("event":"overtaken")"), newer);
  }
}

TEST(Replicas, AreKeptOnlyOnce) {
  World world(2, 1);
  const FileOf file = world.save(0, 1);
  wire::peer::Keep keep = keep_message(world.segments[file].size());
  keep.holders = {0, 1};
  world.network.send(0, 1, keep);
  world.network.run_for();
  EXPECT_TRUE(world.told(0, 1));
  world.network.send(0, 1, keep);
  world.network.run_for();
  EXPECT_EQ(world.copies(file), 2u);
  world.expect_rest();
}

TEST(Replicas, AMessageThatMakesNoSenseIsAnswered) {
  World world(2, 1);
  for (int bad = 0; bad < 5; ++bad) {
    wire::peer::Keep keep = keep_message(8192);
    if (bad == 0) keep.version = 0;
    if (bad == 1) keep.node = 2;
    if (bad == 2) keep.segment_bytes = 5000;
    if (bad == 3) keep.recorded = Level::captured;
    if (bad == 4) keep.version = ~0ull;
    world.network.send(0, 1, keep);
  }
  world.network.run_for();
  EXPECT_TRUE(world.network[1].kept_files.empty());
  EXPECT_EQ(world.network.disks[1]->used_bytes(), 0u);
  world.expect_rest();
}

TEST(Replicas, AreNotPulledFasterThanAllowed) {
  World world(2, 1, 10 * buffer_bytes);
  const std::uint64_t began = world.network.clock.monotonic_ns();
  const FileOf file = world.save(0, 1, 30);
  world.network.run_for(60 * second);
  ASSERT_TRUE(world.told(0, 1));
  world.network.run_for();
  const double seconds = static_cast<double>(world.segments[file].size()) / (10 * buffer_bytes);
  EXPECT_GT(seconds, 2);
  // The clock stands where the last piece was allowed; it only moves when nothing else can happen.
  const double took = 1e-9 * static_cast<double>(world.network.clock.monotonic_ns() - began);
  EXPECT_NEAR(took, seconds, 0.2);
}

TEST(Replicas, ACutThatHealsIsTriedAgain) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 60; ++round) {
    World world(3, 2);
    const FileOf file = world.save(0, 1);
    world.network.pump_all();
    for (auto left = world.network.random().between(0, 150); left > 0; --left) {
      world.network.step();
      world.network.pump_all();
    }
    world.network.cut(0, 1);
    world.network.cut(0, 2);
    world.network.run_for(60 * second);
    EXPECT_TRUE(world.told(0, 1));
    EXPECT_EQ(world.copies(file), 3u);
    world.expect_rest();
  }
}

TEST(Replicas, OlderVersionsGoFirst) {
  World world(2, 1);
  for (VersionNumber version = 5; version >= 1; --version) world.save(0, version);
  std::vector<VersionNumber> order;
  world.network.after_step = [&] {
    for (const VersionNumber version : world.network[0].pinned())
      if (std::ranges::count(order, version) == 0) order.push_back(version);
  };
  world.network.run_for();
  EXPECT_EQ(order, (std::vector<VersionNumber>{1, 2, 3, 4, 5}));
  EXPECT_EQ(world.network[0].told.size(), 5u);
  world.expect_rest();
}

// Who was cut off and asks again is not answered with what had become of its first question.
TEST(Replicas, AConnectionThatIsBackAtOnce) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 100; ++round) {
    World world(2, 1);
    const FileOf file = world.save(0, 1);
    world.network.pump_all();
    for (auto left = world.network.random().between(0, 80); left > 0; --left) {
      world.network.step();
      world.network.pump_all();
    }
    world.network.cut(0, 1);
    // Until node 0 knows, or nothing happens without time passing.
    for (bool goes_on = true;
         goes_on && !world.told(0, 1) && !world.network[0].replicator->blockers(1).has_value();) {
      world.network.pump_all();
      goes_on = world.network.step();
    }
    world.network.membership({}, {1});
    world.network.run_for(second);
    EXPECT_TRUE(world.told(0, 1));
    EXPECT_EQ(world.copies(file), 2u);
    world.expect_rest();
  }
}

// A holder that was asked later than others still learns of them.
TEST(Replicas, AStandInIsKnownToTheOtherHolders) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 60; ++round) {
    World world(5, 2);
    const auto owner = static_cast<NodeId>(world.network.random().between(0, 4));
    const auto full = (owner + static_cast<NodeId>(world.network.random().between(1, 4))) % 5;
    world.network.lose_disk(full, {.capacity_bytes = 4 * buffer_bytes});
    world.network.start(full);
    const FileOf file = world.save(owner, world.network.random().between(1, 100));
    world.network.run_for();
    world.protected_everywhere(file.version);
    ASSERT_EQ(world.copies(file), 3u);
    world.network.lose_disk(full);
    world.network.start(full);
    world.network.kill(owner);
    world.network.membership({owner}, {});
    world.network.run_for(second);
    EXPECT_EQ(world.copies(file), 3u) << "as many as before, without the owner";
    world.expect_rest();
  }
}

// Nothing else may happen for a long time: the next try must be asked for.
TEST(Replicas, WhereNobodyAnswersItIsTriedAgainInTime) {
  World world(3, 1);
  world.network.kill(1);
  world.network.kill(2);
  world.network.run_for();
  world.save(0, 1);
  world.network.run_for();
  ASSERT_TRUE(world.network[0].replicator->blockers(1).has_value());
  EXPECT_NE(world.network[0].wakes_ns, no_deadline);
}

// One bit is wrong once, on its way from the owner's disk: no reason to ask another keeper.
TEST(Replicas, APieceThatIsWrongIsReadOnceMore) {
  std::size_t flipped = 0;
  for (std::uint64_t at = 1;; ++at) {
    World world(2, 1);
    Node& owner = world.network[0];
    owner.faults = std::make_shared<io::Faults>(io::FaultPlan{io::Fault::flip, at});
    owner.files = io::make_faulty_filesystem(*world.network.disks[0], owner.faults);
    world.save(0, 1, 3);
    world.network.run_for();
    const std::string chosen = owner.faults->chosen();
    if (chosen.empty()) break;
    const bool data = chosen.starts_with("read") && chosen.find(".segment") != std::string::npos;
    flipped += data ? 1 : 0;
    EXPECT_TRUE(!data || world.told(0, 1)) << chosen;
  }
  EXPECT_GT(flipped, 0u);
}

TEST(Replicas, AKeeperThatDiesInTheMiddle) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 100; ++round) {
    World world(4, 2);
    const FileOf file = world.save(0, 1, 3);
    const auto victim = static_cast<NodeId>(world.network.random().between(1, 3));
    world.network.pump_all();
    for (auto left = world.network.random().between(0, 150); left > 0; --left) {
      world.network.step();
      world.network.pump_all();
    }
    world.network.kill(victim);
    const bool before = world.told(0, 1);
    world.network.membership({victim}, {});
    world.network.run_for(second);
    EXPECT_TRUE(world.told(0, 1)) << "another took its place";
    EXPECT_EQ(world.copies(file), 3u) << before;
    const bool disk_lost = world.network.random().coin();
    if (disk_lost) world.network.lose_disk(victim);
    world.network.start(victim);
    world.network.membership({}, {victim});
    world.network.run_for(second);
    EXPECT_GE(world.copies(file), 3u);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Replicas, WhatALostNodeHadIsMadeAgain) {
  SCOPED_TRACE(test::replay());
  for (const std::uint32_t replicas : {1u, 2u, 3u}) {
    for (int round = 0; round < 10; ++round) {
      World world(6, replicas);
      world.save_everywhere(1);
      world.save_everywhere(2);
      world.network.run_for();
      for (const VersionNumber version : {1u, 2u}) world.protected_everywhere(version);
      // As many nodes as the level bears, one after the other or at once.
      const bool at_once = world.network.random().coin();
      std::vector<NodeId> lost;
      for (NodeId victim = 0; victim < replicas; ++victim) {
        world.network.kill(victim);
        lost.push_back(victim);
        if (at_once) continue;
        world.network.membership({victim}, {});
        world.network.run_for(second);
      }
      if (at_once) world.network.membership(lost, {});
      world.network.run_for(60 * second);
      const std::size_t living = 6 - replicas;
      for (const auto& [file, segment] : world.segments) {
        EXPECT_EQ(world.copies(file), std::min<std::size_t>(replicas + 1, living))
            << "version " << file.version << " of " << file.node;
      }
      EXPECT_TRUE(living <= replicas ||
                  std::ranges::any_of(std::vector<NodeId>{3, 4, 5}, [&](NodeId node) {
                    return world.network[node].logged("reprotect_begin") &&
                           world.network[node].logged("\"reprotected\"");
                  }));
      world.expect_rest();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Replicas, AFileOfALostNodeThatWasNeverProtectedIsLeft) {
  World world(4, 1);
  const FileOf file = world.save(0, 1);
  world.network.run_for();
  EXPECT_EQ(world.copies(file), 2u);
  world.network.kill(0);
  world.network.membership({0}, {});
  world.network.run_for(60 * second);
  EXPECT_EQ(world.copies(file), 1u) << "no level was ever announced for that version";
}

TEST(Replicas, AMemberThatComesBackGetsTheRecordToo) {
  World world(2, 1);
  world.network.kill(1);
  world.network.membership({1}, {});
  const FileOf file = world.save(0, 1);
  const auto record = store::look_at(*tier_on(*world.network.disks[0]), "job", 1).record;
  world.network[0].replicator->recorded(record);
  world.network.lose_disk(1);
  world.network.start(1);
  world.network.membership({}, {1});
  world.network.run_for(second);
  EXPECT_EQ(world.copies(file), 2u);
  const StoredVersion there = store::look_at(*tier_on(*world.network.disks[1]), "job", 1);
  EXPECT_TRUE(there.good());
  EXPECT_EQ(there.record.manifests_sum, record.manifests_sum);
  ASSERT_EQ(world.network[1].kept_files.size(), 1u);
  EXPECT_TRUE(world.network[1].kept_files[0].record.has_value());
}

// Anything at any time; in the end all live and can reach each other, and everything is as it
// should be.
TEST(Replicas, AnythingAtAnyTime) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 40; ++round) {
    constexpr std::uint32_t nodes = 5;
    World world(nodes, 2);
    test::Random& random = world.network.random();
    VersionNumber version = 0;
    std::set<NodeId> dead;
    for (int event = 0; event < 12; ++event) {
      const auto node = static_cast<NodeId>(random.between(0, nodes - 1));
      switch (random.between(0, 3)) {
        case 0:
          ++version;
          for (NodeId one = 0; one < nodes; ++one)
            if (world.network.lives(one)) world.save(one, version, 2);
          break;
        case 1: world.network.cut(node, (node + 1) % nodes); break;
        case 2:
          if (dead.size() >= 2 || !dead.insert(node).second) break;
          world.network.kill(node);
          world.network.membership({node}, {});
          break;
        default:
          if (dead.empty()) break;
          const NodeId back = *dead.begin();
          dead.erase(dead.begin());
          world.network.start(back);
          world.network[back].replicator->membership(std::vector<NodeId>(dead.begin(), dead.end()),
                                                     {});
          world.network.membership({}, {back});
      }
      for (auto left = random.between(0, 300); left > 0; --left) {
        world.network.step();
        world.network.pump_all();
      }
    }
    for (const NodeId node : dead) world.network.start(node);
    world.network.membership({}, std::vector<NodeId>(dead.begin(), dead.end()));
    world.network.run_for(120 * second);
    for (NodeId node = 0; node < nodes; ++node) {
      for (const VersionNumber one : world.network[node].told)
        EXPECT_GE(world.copies({one, run, node}), 3u) << one << " of " << node;
      EXPECT_FALSE(world.network[node].replicator->blockers(version).has_value());
    }
    for (const auto& [file, segment] : world.segments) world.copies(file);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace backstay::agent
