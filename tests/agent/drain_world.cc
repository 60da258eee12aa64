#include "agent/drain_world.h"

namespace backstay::agent::testing {

std::optional<Code> Member::why_not(VersionNumber version) const {
  const auto& failed = state.versions.last_not_copied();
  if (!failed || failed->version != version) return std::nullopt;
  return failed->error.code();
}

DrainWorldPlayed::DrainWorldPlayed(std::uint32_t nodes, DurableSettings how, std::uint64_t seed)
    : settings(std::move(how)), random_(seed) {
  spdlog::set_level(spdlog::level::critical);  // what goes wrong here is meant to
  static int worlds = 0;
  locks_ = std::filesystem::temp_directory_path() /
           ("backstay-drain-" + std::to_string(::getpid()) + "-" + std::to_string(++worlds));
  EXPECT_TRUE(shared->make_directories(shared_dir).ok());
  begin_run(nodes, 77);
}

DrainWorldPlayed::~DrainWorldPlayed() {
  members_.clear();
  std::filesystem::remove_all(locks_);
}

void DrainWorldPlayed::begin_run(std::uint32_t nodes, RunId number,
                                 const std::vector<NodeId>& from) {
  members_.clear();
  ways_.clear();
  const auto before = std::exchange(disks_, {});
  for (NodeId node = 0; node < nodes; ++node) {
    disks_.push_back(node < from.size() ? before.at(from[node])
                                        : std::make_shared<io::MemoryFileSystem>());
  }
  run = number;
  for (NodeId node = 0; node < nodes; ++node) members_.push_back(nullptr);
  for (NodeId node = 0; node < nodes; ++node) start(node, {}, /*others_live=*/false);
  for (NodeId node = 0; nodes > 1 && node < nodes; ++node) coordinator(node).listed();
}

void DrainWorldPlayed::start(NodeId node, io::FaultPlan plan, bool others_live) {
  plans_[node] = plan;
  members_[node] = std::make_unique<Member>(*this, node);
  Member& member = *members_[node];
  member.durability->open(settings, size());
  act_alone(member);
  for (const auto& [file, held] : on_disk_) {
    if (held.first != disks_[node].get()) continue;
    member.files.add(held.second);
    know(member, *held.second.record);
  }
  if (size() > 1) member.durability->with(member, member.files);
  if (size() > 1 && others_live) coordinator(node).listed();
}

void DrainWorldPlayed::write(NodeId node, VersionNumber version, const std::vector<NodeId>& copies,
                             std::uint32_t chunks, std::optional<VersionNumber> older) {
  std::vector<NodeId> where = copies;
  where.push_back(node);
  for (const NodeId at : where) write_at(at, node, version, chunks, older);
}

void DrainWorldPlayed::copy(NodeId node, VersionNumber version, NodeId keeper) {
  write_at(keeper, node, version, 3, {});
  coordinator(keeper).kept({version, run, node});
}

void DrainWorldPlayed::save(VersionNumber version, std::uint32_t replicas,
                            std::optional<VersionNumber> older) {
  for (NodeId node = 0; node < size(); ++node) {
    std::vector<NodeId> copies;
    for (std::uint32_t next = 1; next <= replicas; ++next) copies.push_back((node + next) % size());
    write(node, version, copies, 3, older);
  }
  local(version);
}

void DrainWorldPlayed::local(VersionNumber version) {
  for (auto& member : members_) {
    if (!member) continue;
    for (const auto& [file, held] : member->files.all())
      if (file.version == version) know(*member, *held.record);
    member->durability->consider();
  }
}

bool DrainWorldPlayed::step() {
  struct Choice {
    NodeId node;
    int what;
    std::pair<NodeId, NodeId> way;
  };
  std::vector<Choice> choices;
  for (const auto& [way, queue] : ways_) {
    const bool deaf = lives(way.second) && members_[way.second]->stopped;
    if (!queue.empty() && !deaf) choices.push_back({way.second, 0, way});
  }
  for (NodeId node = 0; node < size(); ++node) {
    if (!lives(node) || members_[node]->stopped) continue;
    Member& one = *members_[node];
    if (!one.commands.empty()) choices.push_back({node, 1, {}});
    if (one.drain->busy() && !one.slow) choices.push_back({node, 2, {}});
    if (!one.events.empty()) choices.push_back({node, 3, {}});
  }
  if (choices.empty()) return false;
  const Choice choice = choices[random_.between(0, choices.size() - 1)];
  do_one(choice.node, choice.what, choice.way);
  std::size_t writers = 0;
  for (const auto& member : members_) writers += member != nullptr && member->writes() ? 1 : 0;
  writers_max = std::max(writers_max, writers);
  return true;
}

void DrainWorldPlayed::run_to_rest() {
  for (std::size_t steps = 0; step(); ++steps) {
    ASSERT_LT(steps, 200'000u) << "it never comes to rest";
  }
}

void DrainWorldPlayed::cut(NodeId a, NodeId b) {
  ways_[{a, b}].clear();
  ways_[{b, a}].clear();
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    ways_[{from, to}].push_back([this, from = from, to = to] {
      coordinator(to).lost(from, Error(Code::agent_lost, "cut"));
    });
  }
}

void DrainWorldPlayed::kill(NodeId node) {
  members_[node].reset();
  disks_[node]->crash(random_.between(1, 1'000'000));
  for (NodeId other = 0; other < size(); ++other) {
    if (other == node) continue;
    cut(node, other);
  }
}

void DrainWorldPlayed::membership(const std::vector<NodeId>& lost,
                                  const std::vector<NodeId>& back) {
  for (auto& member : members_) {
    if (member && !member->stopped) member->durability->coordinator()->membership(lost, back);
  }
}

void DrainWorldPlayed::live(bool on) {
  for (auto& member : members_) {
    if (member) member->durability->set_live(on);
  }
}

void DrainWorldPlayed::damage(NodeId node, VersionNumber version) {
  const std::string path =
      local_dir + "/" + format::segment_name(format::version_folder("job", version), node);
  Buffer bytes = io::read_file(*disks_[node], path, 1 << 20).value();
  bytes.at(5000) ^= std::byte{1};
  ASSERT_TRUE(io::publish_file(*disks_[node], path, bytes).ok());
}

std::vector<VersionNumber> DrainWorldPlayed::there() {
  const auto tier = open(*shared, shared_dir, std::make_shared<io::Faults>());
  std::vector<VersionNumber> numbers;
  const auto found = store::scan(*tier, "job").value();
  for (const StoredVersion& stored : found) {
    if (!stored.good()) continue;
    numbers.push_back(stored.version);
    expect_whole(stored.record);
  }
  return numbers;
}

std::vector<std::string> DrainWorldPlayed::folders() {
  const auto tier = open(*shared, shared_dir, std::make_shared<io::Faults>());
  return tier->list("job").value();
}

void DrainWorldPlayed::expect_rest() {
  for (auto& member : members_) {
    if (!member) continue;
    for (const auto& [number, row] : member->state.versions.rows()) {
      EXPECT_FALSE(member->state.versions.is_pinned(number)) << member->self();
    }
    EXPECT_FALSE(member->writes());
    EXPECT_EQ(member->durability->copying(), 0u);
  }
  EXPECT_TRUE(store::lock_job(locks_, "job").ok());
}

std::unique_ptr<tier::Tier> DrainWorldPlayed::open(io::FileSystem& files, const std::string& dir,
                                                   std::shared_ptr<io::Faults> faults,
                                                   const std::string& writer) {
  auto make_ring = [faults = std::move(faults),
                    seed = random_.between(1, 1000)]() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_faulty_ring(io::make_memory_ring({.depth = 4, .seed = seed}), faults);
  };
  return std::move(tier::open_dir_tier(files, make_ring, {.root = dir, .writer = writer}).value());
}

void DrainWorldPlayed::send(NodeId from, NodeId to, wire::peer::Message message) {
  if (!lives(to)) {
    ways_[{to, from}].push_back([this, from, to] {
      coordinator(from).lost(to, Error(Code::agent_lost, "nobody is there"));
    });
    return;
  }
  ways_[{from, to}].push_back([this, from, to, message = std::move(message)] {
    const auto packet = wire::peer::encode(message);  // as the wire would bring it
    ASSERT_TRUE(packet.ok());
    EXPECT_TRUE(hears(coordinator(to), from, wire::peer::decode(*packet).value()));
  });
}

DrainWorld DrainWorldPlayed::world_of(Member& member) {
  DrainWorld world;
  world.local_dir = local_dir;
  world.open_tier = [this, node = member.self()](const std::string&) {
    return Result(open(*disks_[node], local_dir, std::make_shared<io::Faults>()));
  };
  world.open_durable = [this,
                        &member](const std::string& dir) -> Result<std::unique_ptr<tier::Tier>> {
    BACKSTAY_TRY(!dir.empty() && member.shared->list(dir).ok()
                     ? Status()
                     : Status(Error(Code::io, dir + " is no directory")));
    return open(*member.shared, dir, member.faults, "of" + std::to_string(member.self()));
  };
  world.lock = [this](const std::string&) { return store::lock_job(locks_, "job"); };
  world.lock_live = [this](const std::string&) { return store::lock_live(locks_, "job"); };
  world.post_event = [&member](Event event) { member.events.push_back(std::move(event)); };
  return world;
}

void DrainWorldPlayed::act_alone(Member& member) {
  while (!member.commands.empty() || !member.events.empty() || member.drain->busy()) {
    for (int what = 1; what <= 3; ++what) do_one(member.self(), what, {});
  }
}

void DrainWorldPlayed::do_one(NodeId node, int what, std::pair<NodeId, NodeId> way) {
  if (what == 0) {
    auto act = std::move(ways_[way].front());
    ways_[way].pop_front();
    if (lives(way.second)) act();
    return;
  }
  Member& one = *members_[node];
  if (what == 1 && !one.commands.empty()) {
    DrainCommand command = std::move(one.commands.front());
    one.commands.pop_front();
    one.drain->handle(std::move(command));
  } else if (what == 2 && one.drain->busy()) {
    one.drain->step();
  } else if (what == 3 && !one.events.empty()) {
    const Event event = std::move(one.events.front());
    one.events.pop_front();
    if (const auto* found = std::get_if<Scanned>(&event)) {
      one.durability->on(*found);
    } else {
      one.durability->on(event);
    }
    one.durability->consider();
  }
}

void DrainWorldPlayed::write_at(NodeId disk, NodeId node, VersionNumber version,
                                std::uint32_t chunks, std::optional<VersionNumber> older) {
  const auto tier = [&] { return open(*disks_[disk], local_dir, std::make_shared<io::Faults>()); };
  HeldFile held{{version, run, node}, size(), size(), 0, {node}, std::nullopt};
  const auto from = older ? std::optional(FileOf{*older, run, node}) : std::nullopt;
  held.record = write_part(tier, {version, run, node, size(), size(), chunk_bytes}, chunks, from);
  on_disk_[{held.file, disk}] = {disks_[disk].get(), held};
  if (disk == node)
    originals_[{version, run, node}] = parts_of(*disks_[disk], local_dir, held.file);
  if (lives(disk)) members_[disk]->files.add(held);
}

std::pair<Buffer, Buffer> DrainWorldPlayed::parts_of(io::FileSystem& files, const std::string& dir,
                                                     const FileOf& file) {
  const std::string folder = dir + "/" + format::version_folder("job", file.version);
  const auto segment = io::read_file(files, format::segment_name(folder, file.node), 1 << 24);
  const auto manifest = io::read_file(files, format::manifest_name(folder, file.node), 1 << 24);
  if (!segment.ok() || !manifest.ok() || segment->size() < 4096) return {};
  return {Buffer(segment->begin() + 4096, segment->end()), *manifest};  // but for its header
}

void DrainWorldPlayed::expect_whole(const format::CommitRecord& record) {
  std::uint64_t payload = 0, sum = 0;
  for (NodeId node = 0; node < record.nodes; ++node) {
    const FileOf file{record.version, record.run, node};
    const auto theirs = parts_of(*shared, shared_dir, file);
    const auto& ours = originals_.at(file);
    EXPECT_TRUE(theirs == ours) << "version " << record.version << " node " << node;
    if (theirs.second.empty()) continue;
    sum += format::manifest_digest(theirs.second);
    const auto manifest = format::decode_manifest(theirs.second).value();
    for (const auto& object : manifest.objects) payload += object.bytes;
  }
  EXPECT_EQ(record.payload_bytes, payload);
  EXPECT_EQ(record.manifests_sum, sum);
  EXPECT_EQ(record.level, Level::durable);
}

Member::Member(DrainWorldPlayed& world, NodeId self)
    : world_(world),
      self_(self),
      pool(std::move(Pool::create({2ull * chunk_bytes, chunk_bytes, false}).value())),
      state{.name = "job",
            .dir = local_dir,
            .run = world.run,
            .node = self,
            .nodes = world.size(),
            .ranks = world.size(),
            .pool = *pool,
            .outbox = *this,
            .store = *this,
            .events = *this,
            .clock = world.clock},
      faults(std::make_shared<io::Faults>(world.plan_of(self))),
      shared(io::make_faulty_filesystem(*world.shared, faults)) {
  drain = std::make_unique<DrainWorker>("job", world.world_of(*this), world.clock);
  durability = std::make_unique<Durability>(state, levels);
}

void Member::send(NodeId to, wire::peer::Message message) {
  world_.send(self_, to, std::move(message));
}

}  // namespace backstay::agent::testing
