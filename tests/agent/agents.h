// Several agents of a run in one thread: their depots, transfers and protection over disks in
// memory and a network that is played. What happens next, of all that may, is chosen by a seed;
// messages of one agent to another keep their order.
//
// A node that is cut gets and sends nothing; both sides learn of it. A node that dies loses its
// agent and what its disk had not synced.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/disk/links.h"
#include "agent/hears.h"
#include "agent/redundancy/redundancy.h"
#include "base/checksum.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "support/seed.h"
#include "tier/dir.h"

namespace backstay::agent::testing {

inline constexpr std::uint32_t buffer_bytes = 16 * 1024;
inline constexpr RunId run = 77;
// Of a node's transfers in its first life: none that its directory uses.
inline constexpr std::uint64_t first_ticket = std::uint64_t{1} << 32;

// Each network that a test makes plays another history; all follow from the printed seed.
inline std::uint64_t next_seed() {
  static const ::testing::TestInfo* test = nullptr;
  static std::uint64_t made = 0;  // in this test, so that one that is run alone replays the same
  const auto* now = ::testing::UnitTest::GetInstance()->current_test_info();
  if (std::exchange(test, now) != now) made = 0;
  return test::seed() + made++;
}

class PlayedNetwork;

class Node final : public Peers,
                   public PeerFileLink,
                   public StoreLink,
                   public Outbox,
                   private FileEvents {
 public:
  Node(PlayedNetwork& network, NodeId self, io::MemoryFileSystem& disk, const Clock& clock,
       ReplicatorSettings settings, std::optional<ParityShape> parity, std::uint32_t buffers);

  // Peers
  NodeId self() const override { return self_; }
  std::uint32_t members() const override;
  void send(NodeId to, wire::peer::Message message) override;
  void offer(NodeId to, std::uint64_t ticket, Bytes memory, Ended ended) override;
  void fetch(OfferFrom offer, std::span<std::byte> memory, Ended ended) override;
  void refuse(OfferFrom offer) override;
  // PeerFileLink, StoreLink
  void post(PeerFileCommand command) override { peer_file_commands.push_back(std::move(command)); }
  void post(Command command) override {
    if (auto* line = std::get_if<AppendEvent>(&command)) events.push_back(std::move(line->line));
  }
  void post_drain(DrainCommand) override {}
  Result<Network> make_network(const MemberId&, const std::string&) override {
    return Error(Code::unsupported, "it is played");
  }
  Status watch(int) override { return {}; }
  // Outbox
  void send(ConnectionId, wire::Message, std::vector<int>) override {}
  void close(ConnectionId) override {}

  // What is on the disk when an agent begins: as Redundancy does.
  void list() {
    if (redundancy) return redundancy->begin();
    post(PeerFileCommand(ListFiles{[this](const Result<std::vector<HeldFile>>& found) {
      ASSERT_TRUE(found.ok());
      directory->announce(*found);
      replicator->listed(*found);
      if (parity_encoder) parity_encoder->listed(*found);
    }}));
  }
  void pump() {
    if (redundancy) {
      wakes_ns = redundancy->pump();
      return;
    }
    wakes_ns = std::min(replicator->pump(), rebuilder->pump());
    if (parity_encoder) wakes_ns = std::min(wakes_ns, parity_encoder->pump());
  }
  // As the table in agent/job has them for the messages about files; the others have no room here.
  void message(NodeId from, const wire::peer::Message& message) {
    const FileMessages rooms = redundancy
                                   ? redundancy->messages()
                                   : FileMessages{*transfers, *directory, *replicator, *rebuilder,
                                                  parity_encoder ? &*parity_encoder : nullptr};
    if (!hears(rooms, from, message) && redundancy) hears(*redundancy, from, message);
  }
  void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) {
    if (redundancy) return redundancy->offered(from, ticket, bytes, offer);
    transfers->offered(from, ticket, bytes, offer);
  }
  void lost(NodeId peer, const Error& why) {
    if (redundancy) return redundancy->lost(peer, why);
    transfers->lost(peer, why);
    directory->lost(peer, why);
    replicator->lost(peer, why);
    rebuilder->lost(peer, why);
    if (parity_encoder) parity_encoder->lost(peer);
  }
  // Versions that retention leaves alone.
  std::vector<VersionNumber> pinned() const {
    std::vector<VersionNumber> all;
    for (VersionNumber version = 1; version <= versions_max; ++version) {
      if (state.versions.is_pinned(version)) all.push_back(version);
    }
    return all;
  }
  static constexpr VersionNumber versions_max = 100;  // that a test takes
  bool logged(const std::string& part) const {
    return std::ranges::any_of(
        events, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }

 private:
  // FileEvents
  void protected_here(VersionNumber version) override { told.push_back(version); }
  void kept(const HeldFile& file) override {
    if (!file.file.parity) kept_files.push_back(file);
    directory->add(file);
  }

  PlayedNetwork& network_;
  const NodeId self_;

 public:
  std::unique_ptr<Pool> pool;
  JobState state;
  StagingBuffers serving;
  StagingBuffers keeping;
  std::shared_ptr<io::Faults> faults = std::make_shared<io::Faults>();
  std::unique_ptr<io::FileSystem> files;  // of the disk, with those faults
  std::deque<PeerFileCommand> peer_file_commands;
  std::deque<PeerFileEvent> peer_file_events;
  std::vector<VersionNumber> told;  // protected here
  std::vector<HeldFile> kept_files;
  std::vector<std::string> events;
  std::uint64_t wakes_ns = no_deadline;
  std::unique_ptr<PeerFileWorker> peer_files;
  std::unique_ptr<Transfers> transfers;
  std::unique_ptr<Replicator> replicator;
  std::unique_ptr<ObjectDirectory> directory;
  std::unique_ptr<StripeCoder> stripe_coder;
  std::unique_ptr<ParityEncoder> parity_encoder;  // null: none is configured
  std::unique_ptr<Rebuilder> rebuilder;
  std::unique_ptr<Redundancy> redundancy;  // where a test has one: in place of these parts
};

class PlayedNetwork {
 public:
  struct Options {
    ReplicatorSettings settings = {};
    std::optional<ParityShape> parity = {};
    std::uint32_t buffers = 3;  // for serving, and as many for keeping
    std::uint64_t seed = next_seed();
  };
  PlayedNetwork(std::uint32_t nodes, Options options) : options_(options), random_(options.seed) {
    spdlog::set_level(spdlog::level::critical);  // what goes wrong here is meant to
    for (NodeId node = 0; node < nodes; ++node) {
      disks.push_back(std::make_unique<io::MemoryFileSystem>());
      nodes_.emplace_back();
    }
    for (NodeId node = 0; node < nodes; ++node) make(node);
  }
  std::uint32_t members() const { return static_cast<std::uint32_t>(nodes_.size()); }
  Node& operator[](NodeId node) { return *nodes_[node]; }
  bool lives(NodeId node) const { return nodes_[node] != nullptr; }
  test::Random& random() { return random_; }

  // One of the things that may happen next; false: nothing may, until time passes or a test does
  // something.
  bool step() {
    struct Choice {
      NodeId node;
      int what;
      std::pair<NodeId, NodeId> way;
    };
    std::vector<Choice> choices;
    for (const auto& [way, queue] : ways_) {
      if (!queue.empty()) choices.push_back({way.second, 0, way});
    }
    for (NodeId node = 0; node < members(); ++node) {
      if (!lives(node)) continue;
      Node& one = *nodes_[node];
      if (!one.peer_file_commands.empty()) choices.push_back({node, 1, {}});
      if (one.peer_files->busy()) choices.push_back({node, 2, {}});
      if (!one.peer_file_events.empty()) choices.push_back({node, 3, {}});
    }
    if (choices.empty()) return false;
    const Choice choice = choices[random_.between(0, choices.size() - 1)];
    do_one(choice.node, choice.what, choice.way);
    if (after_step) after_step();
    return true;
  }
  // Until nothing is left to do; time passes only where nothing else happens, and not beyond
  // `until_ns`.
  void run_for(std::uint64_t ns = 0) {
    const std::uint64_t until = clock.monotonic_ns() + ns;
    pump_all();
    for (std::size_t steps = 0;; ++steps) {
      ASSERT_LT(steps, 2'000'000u) << "it never comes to rest";
      if (step()) {
        pump_all();
        continue;
      }
      std::uint64_t next = no_deadline;
      for (const auto& node : nodes_) {
        if (node) next = std::min(next, node->wakes_ns);
      }
      if (next > until) break;
      clock.advance(next > clock.monotonic_ns() ? next - clock.monotonic_ns() : 1);
      pump_all();
    }
  }
  template <typename Condition>
  void run_until(const char* what, Condition done) {
    for (pump_all(); !done(); pump_all()) {
      ASSERT_TRUE(step()) << "never happened: " << what;
    }
  }
  void pump_all() {
    for (auto& node : nodes_) {
      if (node) node->pump();
    }
  }

  // Nothing is under way any more, and nothing is kept back.
  void expect_rest() {
    for (const auto& node : nodes_) {
      if (!node) continue;
      EXPECT_EQ(node->serving.free_count(), node->serving.count()) << node->self();
      EXPECT_EQ(node->keeping.free_count(), node->keeping.count()) << node->self();
      EXPECT_EQ(node->transfers->reading(), 0u) << node->self();
      EXPECT_EQ(node->stripe_coder->under_way(), 0u) << node->self();
      EXPECT_EQ(node->rebuilder->under_way(), 0u) << node->self();
      EXPECT_TRUE(node->pinned().empty()) << node->self();
      EXPECT_FALSE(node->peer_files->busy()) << node->self();
    }
  }

  // --- what goes wrong ---
  // The connection between two nodes ends.
  void cut(NodeId a, NodeId b) {
    const Error why(Code::agent_lost, "the connection was cut");
    drop_sent(a, b);
    drop_sent(b, a);
    end_offers(a, b);
    end_offers(b, a);
    news(a, b, [this, b, why](NodeId from) { tell_lost(b, from, why); });
    news(b, a, [this, a, why](NodeId from) { tell_lost(a, from, why); });
  }
  // The agent dies, the disk keeps what it synced, and what else the seed says.
  void kill(NodeId node) {
    nodes_[node].reset();
    disks[node]->crash(random_.between(1, 1'000'000));
    for (NodeId other = 0; other < members(); ++other) {
      if (other == node) continue;
      cut(node, other);
      ways_[{other, node}].clear();
    }
  }
  // Of a node, from 0.
  std::uint64_t next_life(NodeId node) { return lives_[node]++; }
  // With the disk that it had, or an empty one.
  void start(NodeId node) {
    make(node);
    nodes_[node]->list();
  }
  void lose_disk(NodeId node, io::MemoryOptions options = {}) {
    nodes_[node].reset();
    disks[node] = std::make_unique<io::MemoryFileSystem>(options);
  }
  // All that live learn it from the tree.
  void membership(std::vector<NodeId> lost, std::vector<NodeId> back) {
    for (auto& node : nodes_) {
      if (node) node->replicator->membership(lost, back);
      if (node && node->parity_encoder) node->parity_encoder->membership(lost, back);
    }
  }

  // --- the network's own ---
  using Act = std::function<void(NodeId from)>;  // at the receiver, if it lives
  // What goes over the wire: a cut drops it.
  void later(NodeId from, NodeId to, Act act) {
    ways_[{from, to}].push_back({std::move(act), true});
  }
  // What the receiver's own end of the connection tells it: another cut does not take it back.
  void news(NodeId from, NodeId to, Act act) {
    ways_[{from, to}].push_back({std::move(act), false});
  }
  void send(NodeId from, NodeId to, wire::peer::Message message) {
    if (!lives(to)) {
      return news(to, from, [this, from](NodeId other) {
        tell_lost(from, other, Error(Code::agent_lost, "nobody is there"));
      });
    }
    later(from, to, [this, to, message = std::move(message)](NodeId sender) {
      // As the wire would bring it.
      const auto packet = wire::peer::encode(message);
      ASSERT_TRUE(packet.ok());
      const auto same = wire::peer::decode(*packet);
      ASSERT_TRUE(same.ok());
      (*this)[to].message(sender, *same);
    });
  }
  void offer(NodeId from, NodeId to, std::uint64_t ticket, Bytes memory, Peers::Ended ended) {
    const std::uint64_t number = ++offers_made_;
    offers_[number] = {from, to, memory, std::move(ended)};
    later(from, to, [this, to, ticket, number, bytes = memory.size()](NodeId sender) {
      if (offers_.contains(number)) (*this)[to].offered(sender, ticket, bytes, {sender, number});
    });
    if (!lives(to)) end_offers(from, to);
  }
  void fetch(OfferFrom which, std::span<std::byte> memory, Peers::Ended ended) {
    const auto offer = offers_.find(which.offer);
    ASSERT_NE(offer, offers_.end());
    ASSERT_EQ(offer->second.memory.size(), memory.size());
    offer->second.to_memory = memory;
    offer->second.fetched = std::move(ended);
    later(offer->second.from, offer->second.to, [this, number = which.offer](NodeId) {
      const auto found = offers_.find(number);
      if (found == offers_.end()) return;
      Offer& one = found->second;
      std::memcpy(one.to_memory.data(), one.memory.data(), one.memory.size());
      pulled_bytes[one.to] += one.memory.size();
      const auto fetched = std::exchange(one.fetched, nullptr);
      end_later(number, Status());
      fetched({});
    });
  }
  void refuse(OfferFrom which) {
    ASSERT_TRUE(offers_.contains(which.offer));
    end_later(which.offer, Error(Code::again, "refused"));
  }

  ManualClock clock;
  RunId present_run = run;  // of agents that start from now on
  std::vector<std::unique_ptr<io::MemoryFileSystem>> disks;
  std::function<void()> after_step;
  std::map<NodeId, std::uint64_t> pulled_bytes;  // by each node from the others

 private:
  void make(NodeId node) {
    nodes_[node] = std::make_unique<Node>(*this, node, *disks[node], clock, options_.settings,
                                          options_.parity, options_.buffers);
  }
  struct Coming {
    Act act;
    bool sent;  // over the wire
  };
  void drop_sent(NodeId from, NodeId to) {
    std::erase_if(ways_[{from, to}], [](const Coming& one) { return one.sent; });
  }
  struct Offer {
    NodeId from = 0;
    NodeId to = 0;
    Bytes memory;
    Peers::Ended ended;
    std::span<std::byte> to_memory = {};
    Peers::Ended fetched = {};
  };
  void do_one(NodeId node, int what, std::pair<NodeId, NodeId> way) {
    if (what == 0) {
      Act act = std::move(ways_[way].front().act);
      ways_[way].pop_front();
      if (lives(way.second)) act(way.first);
      return;
    }
    Node& one = *nodes_[node];
    if (what == 1) {
      PeerFileCommand command = std::move(one.peer_file_commands.front());
      one.peer_file_commands.pop_front();
      one.peer_files->handle(std::move(command));
    } else if (what == 2) {
      one.peer_files->step(random_.coin());
    } else {
      const PeerFileEvent event = std::move(one.peer_file_events.front());
      one.peer_file_events.pop_front();
      event();
    }
  }
  void tell_lost(NodeId node, NodeId peer, const Error& why) { (*this)[node].lost(peer, why); }
  // Whoever made it hears of it; or that the connection was cut, if that comes first.
  void end_later(std::uint64_t number, Status status) {
    const Offer& one = offers_.at(number);
    later(one.to, one.from, [this, number, status = std::move(status)](NodeId) {
      auto offer = offers_.extract(number);
      ASSERT_FALSE(offer.empty());
      offer.mapped().ended(status);
    });
  }
  void end_offers(NodeId from, NodeId to) {
    const Error why(Code::agent_lost, "the connection was cut");
    for (auto at = offers_.begin(); at != offers_.end();) {
      if (at->second.from != from || at->second.to != to) {
        ++at;
        continue;
      }
      Offer one = std::move(at->second);
      at = offers_.erase(at);
      if (one.fetched)
        news(from, to, [ended = std::move(one.fetched), why](NodeId) { ended(why); });
      news(to, from, [ended = std::move(one.ended), why](NodeId) { ended(why); });
    }
  }

  const Options options_;
  test::Random random_;
  std::map<NodeId, std::uint64_t> lives_;  // begun
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<NodeId, NodeId>, std::deque<Coming>> ways_;
  std::map<std::uint64_t, Offer> offers_;
  std::uint64_t offers_made_ = 0;
};

inline Node::Node(PlayedNetwork& network, NodeId self, io::MemoryFileSystem& disk,
                  const Clock& clock, ReplicatorSettings settings,
                  std::optional<ParityShape> parity, std::uint32_t buffers)
    : network_(network),
      self_(self),
      pool(std::move(Pool::create({2ull * buffer_bytes, buffer_bytes, false}).value())),
      state{.name = "job",
            .dir = "/unused",
            .run = network.present_run,
            .node = self,
            .nodes = network.members(),
            .ranks = network.members(),
            .pool = *pool,
            .outbox = *this,
            .store = *this,
            .events = *this,
            .clock = clock},
      serving(buffers, buffer_bytes),
      keeping(buffers, buffer_bytes),
      files(io::make_faulty_filesystem(disk, faults)) {
  peer_files = std::make_unique<PeerFileWorker>(
      "job",
      [this] {
        auto make_ring = [this]() -> Result<std::unique_ptr<io::Ring>> {
          return io::make_faulty_ring(
              io::make_memory_ring({.depth = 3, .seed = network_.random().between(1, 1000)}),
              faults);
        };
        return tier::open_dir_tier(*files, make_ring, {.root = "/disk"});
      },
      [this](PeerFileEvent event) { peer_file_events.push_back(std::move(event)); }, clock);
  transfers = std::make_unique<Transfers>(*this, *this, serving,
                                          first_ticket * (1 + network_.next_life(self_)));
  const ReplicatorWorld world{state, *this, *transfers, *this, keeping};
  const ParitySettings with{parity.value_or(ParityShape{}), settings.domains, settings.bytes_per_s};
  directory = std::make_unique<ObjectDirectory>(*this);
  stripe_coder = std::make_unique<StripeCoder>(*transfers, *this, buffer_bytes);
  FileEvents& heard = *this;
  rebuilder = std::make_unique<Rebuilder>(world, *stripe_coder, *directory, heard);
  if (parity) parity_encoder = std::make_unique<ParityEncoder>(world, *stripe_coder, with, heard);
  replicator = std::make_unique<Replicator>(world, directory->held(), std::move(settings), heard);
}
inline std::uint32_t Node::members() const { return network_.members(); }
inline void Node::send(NodeId to, wire::peer::Message message) {
  network_.send(self_, to, std::move(message));
}
inline void Node::offer(NodeId to, std::uint64_t ticket, Bytes memory, Ended ended) {
  network_.offer(self_, to, ticket, memory, std::move(ended));
}
inline void Node::fetch(OfferFrom offer, std::span<std::byte> memory, Ended ended) {
  network_.fetch(offer, memory, std::move(ended));
}
inline void Node::refuse(OfferFrom offer) { network_.refuse(offer); }

// --- what lies on the disks ----------------------------------------------------------------------

inline std::string path_of(const std::string& name) { return "/disk/" + name; }

inline std::unique_ptr<tier::Tier> tier_on(io::FileSystem& disk) {
  const auto make_ring = []() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring({.depth = 4, .seed = 1});
  };
  return std::move(tier::open_dir_tier(disk, make_ring, {.root = "/disk"}).value());
}

// What an agent writes for a version: its store does. `chunks` of a buffer each, the last one
// shorter. `disk`: of that node, where the file is of an earlier run whose nodes had other numbers.
inline FileOf write_file(PlayedNetwork& network, NodeId node, VersionNumber version,
                         std::uint32_t chunks = 7, std::optional<NodeId> disk = std::nullopt) {
  const std::uint32_t nodes = std::max(network.members(), node + 1);
  format::CommitRecord record;
  StoreWorker worker(
      "job",
      [&]() -> Result<std::unique_ptr<tier::Tier>> {
        return tier_on(*network.disks[disk.value_or(node)]);
      },
      [&](const Event& event) {
        if (const auto* done = std::get_if<VersionSealed>(&event)) record = done->stored.record;
      },
      nullptr);
  worker.handle(OpenVersion{{version, run, node, nodes, nodes, buffer_bytes}});
  AlignedMemory memory(buffer_bytes);
  std::uint64_t bytes = 0;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::uint32_t length = chunk % 3 == 2 ? 5000 : buffer_bytes;
    for (std::size_t at = 0; at < memory.span().size(); ++at)
      memory.span()[at] = static_cast<std::byte>(node * 37 + version * 11 + chunk + at);
    worker.handle(WriteChunk{version, node, chunk, memory.span().first(format::slot_bytes(length)),
                             length, bytes, checksum(memory.span().first(length))});
    bytes += length;
    while (worker.busy()) worker.reap(true);
  }
  worker.handle(SealVersion{version, 42, {{node, bytes}}});
  record.level = Level::local;
  worker.handle(RecordVersion{record});
  return {version, run, node};
}

inline Buffer bytes_of(PlayedNetwork& network, NodeId disk, const std::string& name) {
  auto bytes = io::read_file(*network.disks[disk], path_of(name), 1 << 24);
  return bytes.ok() ? *bytes : Buffer{};
}
inline std::string segment_of(const FileOf& file) {
  return format::segment_name(format::version_folder("job", file.version), file.node);
}
inline std::string manifest_of(const FileOf& file) {
  return format::manifest_name(format::version_folder("job", file.version), file.node);
}
inline std::uint64_t segment_bytes(PlayedNetwork& network, const FileOf& file) {
  return bytes_of(network, file.node, segment_of(file)).size();
}

// Whole: the same bytes as `original`. None: no manifest. Anything else fails the test.
inline bool has_copy(PlayedNetwork& network, NodeId disk, const FileOf& file, const Buffer& segment,
                     const Buffer& manifest) {
  const Buffer found = bytes_of(network, disk, manifest_of(file));
  if (found.empty()) return false;
  EXPECT_EQ(found, manifest) << "node " << disk << " version " << file.version;
  EXPECT_EQ(bytes_of(network, disk, segment_of(file)), segment)
      << "node " << disk << " version " << file.version;
  return true;
}

}  // namespace backstay::agent::testing
