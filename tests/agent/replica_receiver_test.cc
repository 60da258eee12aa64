// Which copies a keeper makes first, and how copies that are made at once share its buffers: no
// link of an owner idles while keepers wait for that of another one.
#include "agent/redundancy/replica_receiver.h"

#include <gtest/gtest.h>

#include "agent/agents.h"

namespace backstay::agent {
namespace {

using namespace testing;

// A node's own reader, with a record of what was asked for.
class Watch final : public FileReader {
 public:
  explicit Watch(FileReader& reader) : reader_(reader) {}

  void read(NodeId holder, const FileOf& file, std::uint64_t offset, std::span<std::byte> memory,
            Done done) override {
    pieces.push_back({file.node, ++on_way_[file.node]});
    reader_.read(holder, file, offset, memory,
                 [this, node = file.node, done = std::move(done)](const Status& status) {
                   --on_way_[node];
                   done(status);
                 });
  }
  void read_manifest(NodeId holder, const FileOf& file, DoneManifest done) override {
    manifests.push_back(file.node);
    reader_.read_manifest(holder, file, std::move(done));
  }

  struct Piece {
    NodeId owner = 0;
    std::size_t being_read = 0;  // of that owner, with this one
  };
  std::vector<Piece> pieces;
  std::vector<NodeId> manifests;

 private:
  FileReader& reader_;
  std::map<NodeId, std::size_t> on_way_;
};

// One node of several, which is to keep a file of each of `owners`, asked in this order.
struct OneKeeper {
  OneKeeper(NodeId self, const std::vector<NodeId>& owners) {
    Node& node = network[self];
    watch = std::make_unique<Watch>(*node.transfers);
    keeper = std::make_unique<ReplicaReceiver>(
        ReplicatorWorld{node.state, node, *watch, node, node.keeping}, 0,
        [this](const wire::peer::Keep& what, const HeldFile&) { kept.push_back(what.node); });
    for (const NodeId owner : owners) {
      const FileOf file = write_file(network, owner, 1, 40);
      wire::peer::Keep what;
      what.version = file.version;
      what.run = file.run;
      what.node = owner;
      what.segment_bytes = bytes_of(network, owner, segment_of(file)).size();
      what.nodes = what.ranks = network.members();
      keeper->keep(owner, what);
    }
    keeper->pump();
    network.after_step = [this] { keeper->pump(); };
  }

  PlayedNetwork network{4, {.buffers = 4}};
  std::unique_ptr<Watch> watch;
  std::vector<NodeId> kept;
  std::unique_ptr<ReplicaReceiver> keeper;  // dies first
};

TEST(ReplicaReceiver, BeginsWithTheNextNodesRoundTheCircle) {
  EXPECT_EQ(OneKeeper(0, {3, 1, 2}).watch->manifests, (std::vector<NodeId>{1, 2}));
  EXPECT_EQ(OneKeeper(1, {0, 2, 3}).watch->manifests, (std::vector<NodeId>{2, 3}));
  EXPECT_EQ(OneKeeper(2, {0, 1, 3}).watch->manifests, (std::vector<NodeId>{3, 0}));
  EXPECT_EQ(OneKeeper(3, {0, 1, 2}).watch->manifests, (std::vector<NodeId>{0, 1}));
}

TEST(ReplicaReceiver, FinishesWhatItHasBegun) {
  OneKeeper one(0, {2, 3});
  const FileOf file = write_file(one.network, 1, 1);
  wire::peer::Keep what;
  what.version = 1;
  what.run = run;
  what.node = 1;
  what.segment_bytes = bytes_of(one.network, 1, segment_of(file)).size();
  what.nodes = what.ranks = 4;
  one.keeper->keep(1, what);
  std::optional<std::size_t> kept_before;  // it began with the newcomer
  one.network.after_step = [&] {
    one.keeper->pump();
    if (!kept_before && one.watch->manifests.back() == 1) kept_before = one.kept.size();
  };
  one.network.run_for();
  EXPECT_EQ(one.watch->manifests, (std::vector<NodeId>{2, 3, 1}));
  EXPECT_EQ(kept_before, 1u);
  EXPECT_EQ(one.kept.size(), 3u);
}

TEST(ReplicaReceiver, TwoCopiesHaveHalfOfTheBuffersEach) {
  SCOPED_TRACE(test::replay());
  for (int round = 0; round < 20; ++round) {
    OneKeeper one(0, {1, 2});
    one.network.run_for();
    ASSERT_EQ(one.kept.size(), 2u);
    std::map<NodeId, std::size_t> first, last;
    const auto& pieces = one.watch->pieces;
    for (std::size_t at = 0; at < pieces.size(); ++at) {
      first.emplace(pieces[at].owner, at);
      last[pieces[at].owner] = at;
    }
    const std::size_t both_from = std::max(first[1], first[2]);
    const std::size_t both_until = std::min(last[1], last[2]);
    EXPECT_GT(both_until, both_from + 20) << "one after the other";
    for (std::size_t at = both_from; at <= both_until; ++at) EXPECT_LE(pieces[at].being_read, 2u);
    const auto used = std::ranges::max(pieces, {}, &Watch::Piece::being_read);
    EXPECT_EQ(used.being_read, 4u) << "who is alone has all";
  }
}

}  // namespace
}  // namespace backstay::agent
