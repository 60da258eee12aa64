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
std::uint64_t next_seed();

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
  void list();
  void pump();
  // As the table in agent/job has them for the messages about files; the others have no room here.
  void message(NodeId from, const wire::peer::Message& message);
  void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer);
  void lost(NodeId peer, const Error& why);
  // Versions that retention leaves alone.
  std::vector<VersionNumber> pinned() const;
  static constexpr VersionNumber versions_max = 100;  // that a test takes
  bool logged(const std::string& part) const;

 private:
  // FileEvents
  void protected_here(VersionNumber version) override { told.push_back(version); }
  void kept(const HeldFile& file) override;

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
  PlayedNetwork(std::uint32_t nodes, Options options);
  std::uint32_t members() const { return static_cast<std::uint32_t>(nodes_.size()); }
  Node& operator[](NodeId node) { return *nodes_[node]; }
  bool lives(NodeId node) const { return nodes_[node] != nullptr; }
  test::Random& random() { return random_; }

  // One of the things that may happen next; false: nothing may, until time passes or a test does
  // something.
  bool step();
  // Until nothing is left to do; time passes only where nothing else happens, and not beyond
  // `until_ns`.
  void run_for(std::uint64_t ns = 0);
  template <typename Condition>
  void run_until(const char* what, Condition done) {
    for (pump_all(); !done(); pump_all()) {
      ASSERT_TRUE(step()) << "never happened: " << what;
    }
  }
  void pump_all();

  // Nothing is under way any more, and nothing is kept back.
  void expect_rest();

  // --- what goes wrong ---
  // The connection between two nodes ends.
  void cut(NodeId a, NodeId b);
  // The agent dies, the disk keeps what it synced, and what else the seed says.
  void kill(NodeId node);
  // Of a node, from 0.
  std::uint64_t next_life(NodeId node) { return lives_[node]++; }
  // With the disk that it had, or an empty one.
  void start(NodeId node);
  void lose_disk(NodeId node, io::MemoryOptions options = {});
  // All that live learn it from the tree.
  void membership(std::vector<NodeId> lost, std::vector<NodeId> back);

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
  void send(NodeId from, NodeId to, wire::peer::Message message);
  void offer(NodeId from, NodeId to, std::uint64_t ticket, Bytes memory, Peers::Ended ended);
  void fetch(OfferFrom which, std::span<std::byte> memory, Peers::Ended ended);
  void refuse(OfferFrom which);

  ManualClock clock;
  RunId present_run = run;  // of agents that start from now on
  std::vector<std::unique_ptr<io::MemoryFileSystem>> disks;
  std::function<void()> after_step;
  std::map<NodeId, std::uint64_t> pulled_bytes;  // by each node from the others

 private:
  void make(NodeId node);
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
  void do_one(NodeId node, int what, std::pair<NodeId, NodeId> way);
  void tell_lost(NodeId node, NodeId peer, const Error& why) { (*this)[node].lost(peer, why); }
  // Whoever made it hears of it; or that the connection was cut, if that comes first.
  void end_later(std::uint64_t number, Status status);
  void end_offers(NodeId from, NodeId to);

  const Options options_;
  test::Random random_;
  std::map<NodeId, std::uint64_t> lives_;  // begun
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<NodeId, NodeId>, std::deque<Coming>> ways_;
  std::map<std::uint64_t, Offer> offers_;
  std::uint64_t offers_made_ = 0;
};

inline std::uint32_t Node::members() const { return network_.members(); }
inline void Node::refuse(OfferFrom offer) { network_.refuse(offer); }

// --- what lies on the disks ----------------------------------------------------------------------

inline std::string path_of(const std::string& name) { return "/disk/" + name; }

std::unique_ptr<tier::Tier> tier_on(io::FileSystem& disk);

// What an agent writes for a version: its store does. `chunks` of a buffer each, the last one
// shorter. `disk`: of that node, where the file is of an earlier run whose nodes had other numbers.
FileOf write_file(PlayedNetwork& network, NodeId node, VersionNumber version,
                  std::uint32_t chunks = 7, std::optional<NodeId> disk = std::nullopt);

Buffer bytes_of(PlayedNetwork& network, NodeId disk, const std::string& name);
std::string segment_of(const FileOf& file);
std::string manifest_of(const FileOf& file);
std::uint64_t segment_bytes(PlayedNetwork& network, const FileOf& file);

// Whole: the same bytes as `original`. None: no manifest. Anything else fails the test.
bool has_copy(PlayedNetwork& network, NodeId disk, const FileOf& file, const Buffer& segment,
              const Buffer& manifest);

}  // namespace backstay::agent::testing
