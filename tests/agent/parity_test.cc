// Level protected by parity over a played network: it is told only when the parity is there for
// good; what up to m nodes of a group saved is made again byte for byte out of what the others
// have; whatever fails ends in another try or a reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "agent/parity_world.h"
#include "agent/redundancy/parity_encoder.h"
#include "agent/refusing_tier.h"
#include "format/parity_manifest.h"

namespace backstay::agent {
namespace {

using namespace testing;
using World = ParityWorld;

TEST(ParityOption, IsReadAndRefusedWithAReason) {
  EXPECT_EQ(*check_parity("3,1", 4), (ParityShape{3, 1}));
  EXPECT_EQ(*check_parity("8,4", 1), (ParityShape{8, 4})) << "one node needs none";
  for (const char* bad :
       {"3", "3,", ",1", "3;1", "3,1,", "a,b", "3,-1", "0,1", "3,0", "3,5", " 3,1", "200,1"}) {
    const auto refused = check_parity(bad, 64);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code(), Code::config) << bad;
    EXPECT_NE(refused.error().message().find("protect.parity"), std::string::npos);
  }
  const auto few = check_parity("3,1", 3);
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().code(), Code::few_nodes);
  EXPECT_NE(few.error().message().find("needs at least 4 nodes, there are 3"), std::string::npos);
}

TEST(Parity, AnyLostNodesComeBackByteForByte) {
  SCOPED_TRACE(test::replay());
  struct Case {
    std::uint32_t nodes;
    ParityShape shape;
  };
  for (const auto& [nodes, shape] :
       {Case{4, {3, 1}}, {4, {2, 2}}, {7, {3, 1}}, {5, {1, 1}}, {6, {2, 4}}}) {
    World world(nodes, shape);
    world.save(1, [](NodeId node) { return 1 + node * 5 % 9; });
    world.network.run_for();
    world.expect_told(1);
    world.expect_rest();
    const auto groups = protect::make_groups(shape, std::vector<std::string>(nodes));
    std::vector<NodeId> lost;
    for (const auto& group : *groups) {
      std::vector<NodeId> members = group;
      for (std::uint32_t i = 0; i < shape.parity; ++i) {
        const auto at = world.network.random().between(0, members.size() - 1);
        lost.push_back(members[at]);
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    world.restart(lost);
    for (const NodeId node : lost) {
      const auto asking = static_cast<NodeId>(world.network.random().between(0, nodes - 1));
      const auto rebuilt = world.rebuild(asking, 1, node);
      ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
      EXPECT_EQ(*rebuilt, node);
      world.expect_rebuilt({1, run, node});
    }
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Parity, StoresNoMoreThanItsShare) {
  World world(4, {3, 1});
  world.save(1);
  world.network.run_for();
  for (NodeId node = 0; node < 4; ++node) {
    const FileOf file{1, run, node};
    const auto manifest =
        format::decode_parity_manifest(bytes_of(world.network, node, parity_manifest_of(file)));
    ASSERT_TRUE(manifest.ok());
    EXPECT_EQ(bytes_of(world.network, node, parity_of(file)).size(), manifest->parity_bytes());
    EXPECT_LE(manifest->parity_bytes(), world.segments[file].size() / 3 + 4096);
    EXPECT_EQ(bytes_of(world.network, node, segment_of(file)), world.segments[file]);
  }
}

// At the instant when a node says so, every machine may stop; what that node keeps must do for any
// other.
TEST(Parity, IsSyncedWhenItIsTold) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int round = 0; round < 20; ++round) {
    World world(4, {3, 1});
    world.save(1, [](NodeId) { return 3u; });
    world.network.run_until("all have told", [&] {
      std::size_t told = 0;
      for (NodeId node = 0; node < 4; ++node) told += world.network[node].told.size();
      return told == 4;
    });
    for (NodeId node = 0; node < 4; ++node) world.network.kill(node);
    const auto lost = static_cast<NodeId>(random.between(0, 3));
    world.restart({lost});
    const auto rebuilt = world.rebuild(lost, 1, lost);
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().to_string();
    world.expect_rebuilt({1, run, lost});
  }
}

// Each call of one node's disk goes wrong once.
TEST(Parity, TroubleThatPasses) {
  SCOPED_TRACE(test::replay());
  for (const auto& [fault, shape] : {std::pair{io::Fault::io, ParityShape{2, 1}},
                                     {io::Fault::no_space, {2, 1}},
                                     {io::Fault::io, {1, 2}}}) {
    for (std::uint64_t at = 1;; ++at) {
      World world(3, shape);
      Node& node = world.network[0];
      for (NodeId one = 0; one < 3; ++one) world.write(one, 1, 3);
      node.faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
      node.files = io::make_faulty_filesystem(*world.network.disks[0], node.faults);
      for (NodeId one = 0; one < 3; ++one) world.record(one, 1);
      world.network.run_for(5 * second);
      const std::string chosen = node.faults->chosen();
      if (chosen.empty()) break;
      for (NodeId one = 0; one < 3; ++one) {
        EXPECT_NE(world.told(one, 1), !world.network[one].parity_encoder->blockers().empty())
            << chosen;
      }
      world.network.run_for(120 * second);
      world.expect_told(1);
      world.restart({1});
      const auto rebuilt = world.rebuild(2, 1, 1);
      EXPECT_TRUE(rebuilt.ok()) << chosen << ": " << rebuilt.error().to_string();
      if (rebuilt.ok()) world.expect_rebuilt({1, run, 1});
      world.expect_rest();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// A bit is wrong once in what is read while parity is made: where no checksum covers it, the parity
// is made of it, and nobody notices before something is rebuilt with it. Then there is another
// block, or the file is lost; nothing wrong is ever kept. How often nobody noticed, over all reads
// of one history.
std::size_t flips_unnoticed(std::uint32_t nodes, ParityShape shape) {
  std::size_t unnoticed = 0;
  for (std::uint64_t at = 1;; ++at) {
    World world(nodes, shape);
    Node& node = world.network[0];
    for (NodeId one = 0; one < nodes; ++one) world.write(one, 1, 6);
    node.faults = std::make_shared<io::Faults>(io::FaultPlan{io::Fault::flip, at});
    node.files = io::make_faulty_filesystem(*world.network.disks[0], node.faults);
    for (NodeId one = 0; one < nodes; ++one) world.record(one, 1);
    world.network.run_for(120 * second);
    const std::string chosen = node.faults->chosen();
    if (chosen.empty()) return unnoticed;
    world.expect_told(1);
    world.restart({1});
    const auto rebuilt = world.rebuild(2, 1, 1);
    if (rebuilt.ok()) {
      world.expect_rebuilt({1, run, 1});
    } else {
      EXPECT_EQ(shape.parity, 1u) << chosen << ": there is one block more than it takes";
      EXPECT_EQ(rebuilt.error().code(), Code::corrupt) << rebuilt.error().to_string();
      EXPECT_TRUE(bytes_of(world.network, world.rebuilder, manifest_of({1, run, 1})).empty());
      ++unnoticed;
    }
    world.expect_rest();
    if (::testing::Test::HasFailure()) return unnoticed;
  }
}

TEST(Parity, ABitThatFlipsWhileItIsMade) {
  SCOPED_TRACE(test::replay());
  EXPECT_EQ(flips_unnoticed(4, {2, 2}), 0u);
  std::size_t unnoticed = 0;  // not in every history: few reads are of what the parity is made of
  for (int history = 0; history < 10 && unnoticed == 0; ++history) {
    unnoticed = flips_unnoticed(3, {2, 1});
  }
  EXPECT_GT(unnoticed, 0u);
}

TEST(Parity, ALostMemberIsSaidAndTriedAgainWhenItIsBack) {
  SCOPED_TRACE(test::replay());
  std::size_t early = 0, late = 0;  // than it had said so
  for (int round = 0; round < 40; ++round) {
    World world(4, round % 2 == 0 ? ParityShape{3, 1} : ParityShape{2, 2});
    world.save(1);
    world.play_some();
    ++(world.told(2, 1) ? late : early);
    world.network.kill(2);
    world.network.membership({2}, {});
    world.network.run_for(second);
    for (const NodeId node : {0u, 1u, 3u}) {
      const bool told = world.told(node, 1);
      EXPECT_NE(told, !world.network[node].parity_encoder->blockers().empty()) << node;
      EXPECT_TRUE(world.network[node].logged(told ? "parity_weakened" : "protect_failed"));
    }
    world.network.start(2);
    world.network.membership({}, {2});
    world.network.run_for(60 * second);
    world.expect_told(1);
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(early, 0u);
  EXPECT_GT(late, 0u);
}

TEST(Parity, AVersionThatIsRemovedMeanwhileIsNoMatter) {
  SCOPED_TRACE(test::replay());
  std::size_t early = 0, late = 0;
  for (int round = 0; round < 60; ++round) {
    World world(4, round % 2 == 0 ? ParityShape{3, 1} : ParityShape{2, 2});
    world.save(1);
    world.play_some();
    ++(world.told(0, 1) ? late : early);
    ASSERT_TRUE(tier_on(*world.network.disks[0])->remove("job").ok());
    world.network[0].parity_encoder->removed(1);
    world.network.run_for(5 * second);
    EXPECT_TRUE(world.network[0].parity_encoder->blockers().empty());
    EXPECT_FALSE(world.network[0].logged("protect_failed"));
    EXPECT_TRUE(bytes_of(world.network, 0, parity_manifest_of({1, run, 0})).empty());
    world.expect_rest();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(early, 0u);
  EXPECT_GT(late, 0u);
}

// Another node has made room for newer ones already.
TEST(Parity, AVersionThatNewerOnesHaveOvertakenIsNoTroubleInTheLog) {
  for (const bool newer : {false, true}) {
    World world(3, {2, 1});
    for (NodeId node = 0; node < 3; ++node) world.write(node, 1, 7);
    ASSERT_TRUE(tier_on(*world.network.disks[1])->remove("job").ok());
    world.network[0].state.newest = newer ? 2 : 1;
    for (NodeId node = 0; node < 3; ++node) world.record(node, 1);
    world.network.run_for(second);
    const auto blockers = world.network[0].parity_encoder->blockers();
    ASSERT_EQ(blockers.size(), 1u);
    EXPECT_EQ(blockers.front().code, Code::not_found);
    EXPECT_EQ(world.network[0].logged("protect_failed"), !newer);
    EXPECT_EQ(world.network[0].logged(R"("event":"overtaken")"), newer);
  }
}

// At its most delicate: while the last step of it is on its way, or just done.
TEST(Parity, AVersionThatIsRemovedWhileItIsSealed) {
  const auto is_seal = [](const PeerFileCommand& one) {
    return std::holds_alternative<SealCopy>(one);
  };
  for (const bool done : {false, true}) {
    World world(4, {3, 1});
    world.save(1);
    Node& node = world.network[0];
    const auto sealing = [&] { return std::ranges::any_of(node.peer_file_commands, is_seal); };
    world.network.run_until("it is to be sealed", sealing);
    if (done) world.network.run_until("it was sealed", [&] { return !sealing(); });
    EXPECT_FALSE(world.told(0, 1));
    ASSERT_TRUE(tier_on(*world.network.disks[0])->remove("job").ok());
    node.parity_encoder->removed(1);
    world.network.run_for(second);
    EXPECT_FALSE(world.told(0, 1));
    EXPECT_TRUE(node.parity_encoder->blockers().empty());
    EXPECT_FALSE(node.logged("protect_failed"));
    EXPECT_TRUE(bytes_of(world.network, 0, parity_manifest_of({1, run, 0})).empty());
    world.expect_rest();
  }
}

// By another thread, after it was seen to be there still: the manifest is put into a folder that is
// made anew for it.
TEST(Parity, AVersionThatIsRemovedJustBeforeTheManifestIsPut) {
  World world(4, {3, 1});
  Node& node = world.network[0];
  const FileOf file{1, run, 0};
  const std::shared_ptr<tier::Tier> disk = tier_on(*world.network.disks[0]);
  const auto trouble = std::make_shared<testing::Warning>();
  bool removed = false;
  trouble->before_put = [&](const std::string& name) {
    if (name == parity_manifest_of(file)) removed = disk->remove("job").ok();
  };
  node.peer_files = std::make_unique<PeerFileWorker>(
      "job",
      [&]() -> Result<std::unique_ptr<tier::Tier>> {
        return std::unique_ptr<tier::Tier>(std::make_unique<RefusingTier>(disk, trouble));
      },
      [&](PeerFileEvent event) { node.peer_file_events.push_back(std::move(event)); },
      world.network.clock);
  world.save(1);
  world.network.run_for(second);
  EXPECT_TRUE(removed);
  EXPECT_FALSE(world.told(0, 1));
  EXPECT_TRUE(bytes_of(world.network, 0, parity_manifest_of(file)).empty()) << "it has no data";
  node.parity_encoder->removed(1);
  world.network.run_for(second);
  EXPECT_TRUE(node.parity_encoder->blockers().empty());
  world.expect_rest();
}

TEST(Parity, IsNotPulledFasterThanAllowed) {
  constexpr std::uint64_t rate = 10 * buffer_bytes;
  for (const auto& [shape, share] : {std::pair{ParityShape{3, 1}, 1.0}, {{2, 2}, 1.5}}) {
    World world(4, shape, rate);
    const std::uint64_t began = world.network.clock.monotonic_ns();
    std::uint64_t ended =
        0;  // when the last one told; the clock only moves when nothing else can happen
    world.network.after_step = [&] {
      for (NodeId node = 0; node < 4; ++node) {
        if (!world.told(node, 1)) return;
      }
      if (ended == 0) ended = world.network.clock.monotonic_ns();
    };
    world.save(1, [](NodeId) { return 30u; });
    world.network.run_for(60 * second);
    world.expect_told(1);
    // Each reads k blocks of the others, as much as its own segment, and m - 1 that they have made
    // for it.
    const double seconds = share * static_cast<double>(world.segments[{1, run, 0}].size()) / rate;
    EXPECT_GT(seconds, 2);
    EXPECT_NEAR(1e-9 * static_cast<double>(ended - began), seconds, 0.5);
  }
}

TEST(Parity, SeveralVersionsTheOldestFirst) {
  World world(4, {3, 1});
  for (VersionNumber version = 1; version <= 3; ++version) world.save(version);
  world.network.run_for();
  for (NodeId node = 0; node < 4; ++node) {
    EXPECT_EQ(world.network[node].told, (std::vector<VersionNumber>{1, 2, 3}));
  }
  world.restart({0});
  for (VersionNumber version = 1; version <= 3; ++version) {
    ASSERT_TRUE(world.rebuild(1, version, 0).ok());
    world.expect_rebuilt({version, run, 0});
  }
}

TEST(Parity, HowManyMoreMayBeLostIsSaidWheneverItGetsLess) {
  World world(4, {2, 2});
  world.save(1);
  world.network.run_for();
  Node& node = world.network[0];
  const auto said = [&] {
    return std::ranges::count_if(node.events, [](const std::string& line) {
      return line.find("parity_weakened") != std::string::npos;
    });
  };
  world.network.membership({2}, {});
  EXPECT_EQ(said(), 1);
  EXPECT_TRUE(node.logged("\"left\":1"));
  world.network.membership({}, {});
  EXPECT_EQ(said(), 1);
  world.network.membership({3}, {});
  EXPECT_EQ(said(), 2);
  EXPECT_TRUE(node.logged("\"left\":0"));
  world.network.membership({}, {3});
  EXPECT_EQ(said(), 2);
  world.network.membership({3}, {});
  EXPECT_EQ(said(), 3);
}

// What a member says of the length of its segment makes nobody else's memory as large as that.
TEST(Parity, AnAbsurdLengthIsRefusedBeforeAnythingIsMadeForIt) {
  for (const auto& [bytes, code] : {std::pair{std::uint64_t{1} << 42, Code::no_space},
                                    {std::uint64_t{1} << 56, Code::too_large},
                                    {~std::uint64_t{4095}, Code::corrupt}}) {
    World world(3, {2, 1});
    for (NodeId node = 0; node < 3; ++node) {
      world.network.lose_disk(node, {.capacity_bytes = 1 << 20});
      world.network.start(node);
      world.write(node, 1, 3);
    }
    auto manifest = *format::decode_manifest(world.manifests[{1, run, 1}]);
    manifest.segment_bytes = bytes;
    ASSERT_TRUE(io::publish_file(*world.network.disks[1], path_of(manifest_of({1, run, 1})),
                                 format::encode(manifest))
                    .ok());
    for (NodeId node = 0; node < 3; ++node) world.record(node, 1);
    world.network.run_for(second);
    const auto blockers = world.network[0].parity_encoder->blockers();
    ASSERT_EQ(blockers.size(), 1u);
    EXPECT_EQ(blockers[0].code, code) << blockers[0].why;
    EXPECT_TRUE(bytes_of(world.network, 0, parity_of({1, run, 0})).empty());
    world.expect_rest();
  }
}

}  // namespace
}  // namespace backstay::agent
