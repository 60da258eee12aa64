#include "agent/agents.h"

namespace backstay::agent::testing {

std::uint64_t next_seed() {
  static const ::testing::TestInfo* test = nullptr;
  static std::uint64_t made = 0;  // in this test, so that one that is run alone replays the same
  const auto* now = ::testing::UnitTest::GetInstance()->current_test_info();
  if (std::exchange(test, now) != now) made = 0;
  return test::seed() + made++;
}

void Node::list() {
  if (redundancy) return redundancy->begin();
  post(PeerFileCommand(ListFiles{[this](const Result<std::vector<HeldFile>>& found) {
    ASSERT_TRUE(found.ok());
    directory->announce(*found);
    replicator->listed(*found);
    if (parity_encoder) parity_encoder->listed(*found);
  }}));
}

void Node::pump() {
  if (redundancy) {
    wakes_ns = redundancy->pump();
    return;
  }
  wakes_ns = std::min(replicator->pump(), rebuilder->pump());
  if (parity_encoder) wakes_ns = std::min(wakes_ns, parity_encoder->pump());
}

void Node::message(NodeId from, const wire::peer::Message& message) {
  const FileMessages rooms = redundancy
                                 ? redundancy->messages()
                                 : FileMessages{*transfers, *directory, *replicator, *rebuilder,
                                                parity_encoder ? &*parity_encoder : nullptr};
  if (!hears(rooms, from, message) && redundancy) hears(*redundancy, from, message);
}

void Node::offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) {
  if (redundancy) return redundancy->offered(from, ticket, bytes, offer);
  transfers->offered(from, ticket, bytes, offer);
}

void Node::lost(NodeId peer, const Error& why) {
  if (redundancy) return redundancy->lost(peer, why);
  transfers->lost(peer, why);
  directory->lost(peer, why);
  replicator->lost(peer, why);
  rebuilder->lost(peer, why);
  if (parity_encoder) parity_encoder->lost(peer);
}

std::vector<VersionNumber> Node::pinned() const {
  std::vector<VersionNumber> all;
  for (VersionNumber version = 1; version <= versions_max; ++version) {
    if (state.versions.is_pinned(version)) all.push_back(version);
  }
  return all;
}

bool Node::logged(const std::string& part) const {
  return std::ranges::any_of(
      events, [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

void Node::kept(const HeldFile& file) {
  if (!file.file.parity) kept_files.push_back(file);
  directory->add(file);
}

PlayedNetwork::PlayedNetwork(std::uint32_t nodes, Options options)
    : options_(options), random_(options.seed) {
  spdlog::set_level(spdlog::level::critical);  // what goes wrong here is meant to
  for (NodeId node = 0; node < nodes; ++node) {
    disks.push_back(std::make_unique<io::MemoryFileSystem>());
    nodes_.emplace_back();
  }
  for (NodeId node = 0; node < nodes; ++node) make(node);
}

bool PlayedNetwork::step() {
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

void PlayedNetwork::run_for(std::uint64_t ns) {
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

void PlayedNetwork::pump_all() {
  for (auto& node : nodes_) {
    if (node) node->pump();
  }
}

void PlayedNetwork::expect_rest() {
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

void PlayedNetwork::cut(NodeId a, NodeId b) {
  const Error why(Code::agent_lost, "the connection was cut");
  drop_sent(a, b);
  drop_sent(b, a);
  end_offers(a, b);
  end_offers(b, a);
  news(a, b, [this, b, why](NodeId from) { tell_lost(b, from, why); });
  news(b, a, [this, a, why](NodeId from) { tell_lost(a, from, why); });
}

void PlayedNetwork::kill(NodeId node) {
  nodes_[node].reset();
  disks[node]->crash(random_.between(1, 1'000'000));
  for (NodeId other = 0; other < members(); ++other) {
    if (other == node) continue;
    cut(node, other);
    ways_[{other, node}].clear();
  }
}

void PlayedNetwork::start(NodeId node) {
  make(node);
  nodes_[node]->list();
}

void PlayedNetwork::lose_disk(NodeId node, io::MemoryOptions options) {
  nodes_[node].reset();
  disks[node] = std::make_unique<io::MemoryFileSystem>(options);
}

void PlayedNetwork::membership(std::vector<NodeId> lost, std::vector<NodeId> back) {
  for (auto& node : nodes_) {
    if (node) node->replicator->membership(lost, back);
    if (node && node->parity_encoder) node->parity_encoder->membership(lost, back);
  }
}

void PlayedNetwork::send(NodeId from, NodeId to, wire::peer::Message message) {
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

void PlayedNetwork::offer(NodeId from, NodeId to, std::uint64_t ticket, Bytes memory,
                          Peers::Ended ended) {
  const std::uint64_t number = ++offers_made_;
  offers_[number] = {from, to, memory, std::move(ended)};
  later(from, to, [this, to, ticket, number, bytes = memory.size()](NodeId sender) {
    if (offers_.contains(number)) (*this)[to].offered(sender, ticket, bytes, {sender, number});
  });
  if (!lives(to)) end_offers(from, to);
}

void PlayedNetwork::fetch(OfferFrom which, std::span<std::byte> memory, Peers::Ended ended) {
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

void PlayedNetwork::refuse(OfferFrom which) {
  ASSERT_TRUE(offers_.contains(which.offer));
  end_later(which.offer, Error(Code::again, "refused"));
}

void PlayedNetwork::make(NodeId node) {
  nodes_[node] = std::make_unique<Node>(*this, node, *disks[node], clock, options_.settings,
                                        options_.parity, options_.buffers);
}

void PlayedNetwork::do_one(NodeId node, int what, std::pair<NodeId, NodeId> way) {
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

void PlayedNetwork::end_later(std::uint64_t number, Status status) {
  const Offer& one = offers_.at(number);
  later(one.to, one.from, [this, number, status = std::move(status)](NodeId) {
    auto offer = offers_.extract(number);
    ASSERT_FALSE(offer.empty());
    offer.mapped().ended(status);
  });
}

void PlayedNetwork::end_offers(NodeId from, NodeId to) {
  const Error why(Code::agent_lost, "the connection was cut");
  for (auto at = offers_.begin(); at != offers_.end();) {
    if (at->second.from != from || at->second.to != to) {
      ++at;
      continue;
    }
    Offer one = std::move(at->second);
    at = offers_.erase(at);
    if (one.fetched) news(from, to, [ended = std::move(one.fetched), why](NodeId) { ended(why); });
    news(to, from, [ended = std::move(one.ended), why](NodeId) { ended(why); });
  }
}

Node::Node(PlayedNetwork& network, NodeId self, io::MemoryFileSystem& disk, const Clock& clock,
           ReplicatorSettings settings, std::optional<ParityShape> parity, std::uint32_t buffers)
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

void Node::send(NodeId to, wire::peer::Message message) {
  network_.send(self_, to, std::move(message));
}

void Node::offer(NodeId to, std::uint64_t ticket, Bytes memory, Ended ended) {
  network_.offer(self_, to, ticket, memory, std::move(ended));
}

void Node::fetch(OfferFrom offer, std::span<std::byte> memory, Ended ended) {
  network_.fetch(offer, memory, std::move(ended));
}

std::unique_ptr<tier::Tier> tier_on(io::FileSystem& disk) {
  const auto make_ring = []() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring({.depth = 4, .seed = 1});
  };
  return std::move(tier::open_dir_tier(disk, make_ring, {.root = "/disk"}).value());
}

FileOf write_file(PlayedNetwork& network, NodeId node, VersionNumber version, std::uint32_t chunks,
                  std::optional<NodeId> disk) {
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

Buffer bytes_of(PlayedNetwork& network, NodeId disk, const std::string& name) {
  auto bytes = io::read_file(*network.disks[disk], path_of(name), 1 << 24);
  return bytes.ok() ? *bytes : Buffer{};
}

std::string segment_of(const FileOf& file) {
  return format::segment_name(format::version_folder("job", file.version), file.node);
}

std::string manifest_of(const FileOf& file) {
  return format::manifest_name(format::version_folder("job", file.version), file.node);
}

std::uint64_t segment_bytes(PlayedNetwork& network, const FileOf& file) {
  return bytes_of(network, file.node, segment_of(file)).size();
}

bool has_copy(PlayedNetwork& network, NodeId disk, const FileOf& file, const Buffer& segment,
              const Buffer& manifest) {
  const Buffer found = bytes_of(network, disk, manifest_of(file));
  if (found.empty()) return false;
  EXPECT_EQ(found, manifest) << "node " << disk << " version " << file.version;
  EXPECT_EQ(bytes_of(network, disk, segment_of(file)), segment)
      << "node " << disk << " version " << file.version;
  return true;
}

}  // namespace backstay::agent::testing
