// The parts of a run on several nodes put together as an agent has them: what it begins with, and
// what was found damaged.
#include "agent/redundancy/redundancy.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "agent/agents.h"

namespace backstay::agent {
namespace {

using namespace testing;

class Neighbours {
 public:
  Neighbours(std::uint32_t nodes, std::uint32_t replicas,
             std::optional<ParitySettings> parity = std::nullopt)
      : network(nodes, {}), around(nodes), replicas_(replicas), parity_(std::move(parity)) {
    for (NodeId node = 0; node < nodes; ++node) make(node);
  }
  // A new agent's, of the same run.
  void make(NodeId node) {
    Node& one = network[node];
    heard_[node] = std::make_unique<Heard>(one.told, around[node]);
    one.redundancy =
        std::make_unique<Redundancy>(one.state, one, PeerFileParts{one, one.serving, one.keeping},
                                     ReplicatorSettings{replicas_, {}, 0}, parity_, *heard_[node]);
  }
  void begin() {
    for (NodeId node = 0; node < network.members(); ++node) network[node].list();
  }
  void open() {
    network.run_for();
    for (NodeId node = 0; node < network.members(); ++node) network[node].redundancy->open();
    network.run_for();
  }

  PlayedNetwork network;
  std::vector<RemoteFiles*> around;

 private:
  class Heard final : public RedundancyEvents {
   public:
    Heard(std::vector<VersionNumber>& told, RemoteFiles*& around) : told_(told), around_(around) {}
    void listed(RemoteFiles& around) override { around_ = &around; }
    void directory_complete() override {}
    void protected_here(VersionNumber version) override { told_.push_back(version); }
    bool has_told(VersionNumber) const override { return true; }
    void kept(const HeldFile&) override {}
    void damaged(NodeId, const FileOf&, const Error&) override {}

   private:
    std::vector<VersionNumber>& told_;
    RemoteFiles*& around_;
  };
  const std::uint32_t replicas_;
  const std::optional<ParitySettings> parity_;
  std::map<NodeId, std::unique_ptr<Heard>> heard_;
};

TEST(RedundancyOfARun, GoesOnWithWhatItsAgentFinds) {
  Neighbours all(3, 1);
  const FileOf file = write_file(all.network, 0, 1);
  all.begin();
  all.open();
  EXPECT_EQ(all.network[0].told, std::vector<VersionNumber>{1});
  EXPECT_NE(all.network[0].redundancy->held().find(file), nullptr);
}

TEST(RedundancyOfARun, WhatIsRemovedWhileItIsListedIsNotHeld) {
  Neighbours all(3, 1);
  const FileOf file = write_file(all.network, 0, 1);
  all.begin();
  all.network.run_until("it was listed", [&] { return !all.network[0].peer_file_events.empty(); });
  ASSERT_TRUE(tier_on(*all.network.disks[0])->remove("job").ok());
  all.network[0].redundancy->removed(1);
  all.open();
  EXPECT_EQ(all.network[0].redundancy->held().find(file), nullptr);
  EXPECT_FALSE(all.network[0].logged("protect_failed"));
}

// The node that wrote it may be gone with its disk; a version of the present run is looked after
// anyhow.
TEST(RedundancyOfARun, WhatAnEarlierRunLeftIsCopiedAgainOnceTheProgramGoesOnFromIt) {
  Neighbours all(3, 1);
  const FileOf file = write_file(all.network, 0, 1);
  for (NodeId node = 0; node < 3; ++node) all.network[node].state.run = run + 1;
  all.begin();
  all.open();
  const auto holders = [&] {
    std::size_t count = 0;
    for (NodeId node = 0; node < 3; ++node) {
      count += all.network[node].redundancy->held().find(file) != nullptr ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(holders(), 1u);
  for (NodeId node = 0; node < 3; ++node) all.network[node].redundancy->brought_back({1, run});
  all.network.run_for();
  EXPECT_EQ(holders(), 2u);
  for (NodeId node = 0; node < 3; ++node) all.network[node].redundancy->brought_back({1, run});
  all.network.run_for();
  EXPECT_EQ(holders(), 2u);
}

// Of a version that an earlier run saved: who may keep chunks of it in this run.
TEST(RedundancyOfARun, WithReplicasEachFileThatIsHereMayBeNeeded) {
  Neighbours all(3, 1);
  const FileOf file = write_file(all.network, 0, 1);
  for (NodeId node = 0; node < 3; ++node) all.network[node].state.run = run + 1;
  all.begin();
  all.open();
  EXPECT_TRUE(all.around[0]->may_be_needed(file));
  EXPECT_FALSE(all.around[1]->may_be_needed(file));
}

TEST(RedundancyOfARun, WithParityItsOwnFileMayBeNeededWhereItsParityIsHere) {
  Neighbours all(3, 0, ParitySettings{{2, 1}, {}, 0});
  const auto next_run = [&](RunId of) {
    for (NodeId node = 0; node < 3; ++node) {
      all.network[node].state.run = of;
      all.make(node);
    }
    all.begin();
    all.open();
  };
  for (NodeId node = 0; node < 3; ++node) write_file(all.network, node, 1);
  next_run(run + 1);
  EXPECT_FALSE(all.around[0]->may_be_needed({1, run, 0})) << "there is no parity of it";
  next_run(run);
  all.network.run_for();
  next_run(run + 1);
  for (NodeId node = 0; node < 3; ++node) {
    EXPECT_TRUE(all.around[node]->may_be_needed({1, run, node})) << node;
    EXPECT_FALSE(all.around[node]->may_be_needed({1, run, (node + 1) % 3})) << node;
  }
}

// Retention must not take it while the other nodes still make copies (retention_pin.h).
TEST(RedundancyOfARun, TheFavouredVersionIsHeldUntilItIsProtected) {
  for (const std::uint32_t replicas : {0u, 1u}) {
    Neighbours all(3, replicas);
    all.begin();
    all.open();
    Node& node = all.network[0];
    StoredVersion stored{1, Level::local};
    stored.record.run = node.state.run;
    node.state.versions.found(stored, Where::disk);
    node.redundancy->pump();
    EXPECT_EQ(node.pinned().size(), replicas) << "nothing will be protected without copies";
    stored.level = Level::protected_;
    node.state.versions.found(stored, Where::disk);
    node.redundancy->protected_everywhere(1);
    EXPECT_TRUE(node.pinned().empty());
  }
}

// What the others have done for it would be vain if this node removed it before they have.
TEST(RedundancyOfARun, TheNewestThatIsProtectedHereIsHeldUntilItIsEverywhere) {
  Neighbours all(3, 1);
  write_file(all.network, 0, 1);
  all.begin();
  all.open();
  Node& node = all.network[0];
  EXPECT_EQ(node.told, std::vector<VersionNumber>{1});
  EXPECT_EQ(node.pinned(), std::vector<VersionNumber>{1});
  StoredVersion newer{2, Level::local};
  newer.record.run = node.state.run;
  node.state.versions.found(newer, Where::disk);
  node.redundancy->pump();
  EXPECT_TRUE(node.state.versions.is_pinned(1)) << "though another one is pinned";
  newer.level = Level::protected_;
  node.state.versions.found(newer, Where::disk);
  node.redundancy->protected_everywhere(2);
  EXPECT_TRUE(node.pinned().empty());
}

TEST(RedundancyOfARun, ADamagedFileIsRepairedOnceSomebodyHasAnother) {
  Neighbours all(2, 0);
  const FileOf file = write_file(all.network, 0, 1);
  write_file(all.network, 1, 1);
  const Buffer segment = bytes_of(all.network, 0, segment_of(file));
  const Buffer manifest = bytes_of(all.network, 0, manifest_of(file));
  Buffer wrong = segment;
  wrong.at(5000) ^= std::byte{1};
  ASSERT_TRUE(io::publish_file(*all.network.disks[0], path_of(segment_of(file)), wrong).ok());
  all.begin();
  all.open();
  const Error damage(Code::corrupt, "bad bytes");
  all.around[1]->damaged(0, file, damage);
  all.network.run_for();
  EXPECT_FALSE(all.network[0].logged("repaired")) << "nobody has another";

  for (const auto& [name, bytes] :
       {std::pair{segment_of(file), segment}, {manifest_of(file), manifest}}) {
    ASSERT_TRUE(io::publish_file(*all.network.disks[1], path_of(name), bytes).ok());
  }
  all.make(1);
  all.network[1].list();
  all.open();
  all.around[1]->damaged(0, file, damage);
  all.network.run_for();
  EXPECT_TRUE(all.network[0].logged("repaired"));
  EXPECT_TRUE(has_copy(all.network, 0, file, segment, manifest));
}

}  // namespace
}  // namespace backstay::agent
