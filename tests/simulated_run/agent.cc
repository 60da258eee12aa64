#include "simulated_run/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "tier/dir.h"
#include "wire/tree_message.h"

namespace backstay::simulated {

namespace {

// What the job of an agent has of a line. `sent` gets each message that it sends.
class Handle final : public net::Transport {
 public:
  Handle(std::shared_ptr<Line> line, std::function<void(Bytes)> sent)
      : line_(std::move(line)), sent_(std::move(sent)) {}
  const net::Facts& facts() const override { return line_->transport->facts(); }
  std::vector<net::Event> progress() override {
    auto events = line_->transport->progress();
    for (const net::Event& event : events) {
      if (const auto* fetched = std::get_if<net::Fetched>(&event)) take_in(*fetched);
    }
    return events;
  }
  net::PeerId connect(const std::string& address) override {
    return line_->transport->connect(address);
  }
  Status send(net::PeerId peer, Bytes bytes) override {
    sent_(bytes);
    return line_->transport->send(peer, bytes);
  }
  Result<net::OfferId> offer(net::PeerId peer, Bytes header, Bytes memory) override {
    return line_->transport->offer(peer, header, memory);
  }
  Status fetch(net::PeerId peer, net::OfferId offer, std::span<std::byte> memory) override {
    Buffer& arrives_in = line_->arrivals[{peer, offer}];
    arrives_in.resize(memory.size());
    wanted_[{peer, offer}] = memory;
    return line_->transport->fetch(peer, offer, arrives_in);
  }
  Status refuse(net::PeerId peer, net::OfferId offer) override {
    return line_->transport->refuse(peer, offer);
  }
  void pause(bool on) override { line_->transport->pause(on); }
  void close(net::PeerId peer) override { line_->transport->close(peer); }

 private:
  void take_in(const net::Fetched& fetched) {
    const auto key = std::pair(fetched.peer, fetched.offer);
    const auto wanted = wanted_.find(key);
    if (wanted == wanted_.end()) return;
    if (fetched.status.ok()) std::ranges::copy(line_->arrivals.at(key), wanted->second.begin());
    line_->arrivals.erase(key);
    wanted_.erase(wanted);
  }

  const std::shared_ptr<Line> line_;
  const std::function<void(Bytes)> sent_;
  std::map<std::pair<net::PeerId, net::OfferId>, std::span<std::byte>> wanted_;
};

}  // namespace

Result<store::HeldLock> Locks::take(const std::string& name) {
  Fd& file = files_[name];
  if (!file.valid()) file.reset(::memfd_create("lock", MFD_CLOEXEC));
  // A descriptor of its own: the kernel locks per opening.
  Fd held(::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDWR | O_CLOEXEC));
  if (!held.valid()) return errno_error("open a lock", errno);
  if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) return Error(Code::busy, name + " is locked");
  // A directory in memory has no path to watch: the lock is held by the pointer, which leads
  // nowhere.
  return store::HeldLock(std::make_shared<Fd>(std::move(held)), nullptr);
}

SimulatedAgent::SimulatedAgent(const Surroundings& around, io::MemoryFileSystem& disk,
                               ToRank to_rank)
    : around_(around),
      disk_(disk),
      to_rank_(std::move(to_rank)),
      name_("agent" + std::to_string(around.random.between(1, UINT32_MAX))),
      pool_(std::move(
          agent::Pool::create({std::uint64_t{around.buffers} * buffer_bytes, buffer_bytes, false})
              .value())) {
  for (const std::size_t thread : {0, 2})
    speeds_.at(thread) = around_.random.between(0, 3) == 0 ? 1 : 8;
  auto own_disk = [this] {
    return open(disk_, {.root = local_dir,
                        .recycle = true,
                        .spare_folder = "job/.spare",
                        .spare_bytes_min = 4096});
  };
  store_ = std::make_unique<ReusingStore>(own_disk, [this](agent::Event event) {
    events_.push_back([this, event = std::move(event)] { job_->on(event); });
  });
  drain_ = std::make_unique<agent::DrainWorker>("job", drain_world(), around_.clock);
  peer_files_ = std::make_unique<agent::PeerFileWorker>(
      "job", [this] { return open(disk_, {.root = local_dir}); },
      [this](agent::PeerFileEvent event) { events_.push_back(std::move(event)); }, around_.clock);
  job_ = std::make_unique<agent::Job>("job", local_dir, *pool_, *this, *this, around_.clock,
                                      std::move(agent::ControlPage::create().value()));
}

SimulatedAgent::~SimulatedAgent() {
  for (const auto& line : lines_) {
    const auto open = line.lock();
    if (!open) continue;
    open->transport->kill();  // it takes no leave
    if (end_ == End::powered_off) around_.silent.push_back(open);
  }
  job_.reset();
}

Result<std::unique_ptr<tier::Tier>> SimulatedAgent::open(io::FileSystem& files,
                                                         tier::DirOptions options) {
  auto make_ring = [this]() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring({.depth = 4, .seed = around_.random.between(1, UINT32_MAX)});
  };
  options.folders = folders_;
  return tier::open_dir_tier(files, make_ring, std::move(options));
}

agent::DrainWorld SimulatedAgent::drain_world() {
  agent::DrainWorld world;
  world.local_dir = local_dir;
  world.open_tier = [this](const std::string& dir) { return open(disk_, {.root = dir}); };
  world.open_durable = [this](const std::string& dir) {
    return open(around_.shared, {.root = dir, .writer = name_});
  };
  world.lock = [this](const std::string&) { return around_.locks.take("job"); };
  world.lock_live = [this](const std::string&) { return around_.locks.take("live"); };
  world.post_event = [this](agent::Event event) {
    events_.push_back([this, event = std::move(event)] { job_->on_drain(event); });
  };
  return world;
}

Result<agent::Network> SimulatedAgent::make_network(const agent::MemberId& self,
                                                    const std::string&) {
  net::LossyPlan plan = around_.faults;
  plan.seed = around_.random.between(1, UINT32_MAX);
  auto line = std::make_shared<Line>();
  line->transport = net::make_lossy(around_.network.make(self.text()), around_.clock, plan);
  lines_.push_back(line);
  vouched_ = {self, 0, 0};
  auto sent = [this, run = self.run](Bytes message) { overhear(run, message); };
  return agent::Network{std::make_unique<Handle>(std::move(line), std::move(sent)),
                        around_.heartbeat_s, &around_.clock};
}

// Notes which of its own parts it reports as protected, alone or together with nodes below it.
void SimulatedAgent::overhear(RunId run, Bytes sent) {
  constexpr std::byte tree_channel{1};  // docs/protocol/peers.md
  if (run != vouched_.self.run || sent.empty() || sent.front() != tree_channel) return;
  const auto message = wire::tree::decode(sent.subspan(1));
  const auto* report = message.ok() ? std::get_if<wire::tree::Report>(&*message) : nullptr;
  if (report == nullptr) return;
  for (const wire::tree::Row& row : report->rows) {
    const bool held =
        row.key.kind == static_cast<std::uint32_t>(wire::tree::Kind::held) && row.key.run == run;
    const bool own = std::ranges::any_of(row.nodes, [&](const wire::tree::Range& nodes) {
      return vouched_.self.node - nodes.first < nodes.count;  // unsigned: not one before the first
    });
    if (!held || !own || row.lowest < static_cast<std::uint64_t>(Level::protected_)) continue;
    if (row.key.number <= vouched_.version) continue;
    vouched_.version = row.key.number;
    vouched_.after = posted_;
  }
}

void SimulatedAgent::send(agent::ConnectionId to, wire::Message message, std::vector<int>) {
  to_rank_(to, std::move(message));
}

std::string SimulatedAgent::describe() const {
  std::string pool;
  for (const auto& [number, version] : job_->state().memory) {
    const auto held = std::ranges::count_if(
        version.chunks, [](const agent::HeldChunk& chunk) { return !chunk.released; });
    pool += fmt::format("; {}: {} buffers, {} being written{}{}{}{}{}", number, held,
                        version.writing.size(), version.captured ? ", captured" : "",
                        job_->state().is_prepared(version) ? ", prepared" : "",
                        job_->state().is_local(version) ? ", local" : "",
                        version.dropping ? ", dropping" : "",
                        version.failed ? ", failed: " + version.failed->message() : "");
  }
  for (const auto& [number, row] : job_->state().versions.rows()) {
    if (!row.disk) continue;
    pool += fmt::format("; {}: record {}, announced {}{}", number, level_name(row.disk->level),
                        level_name(row.announced), row.in_doubt() ? ", in doubt" : "");
  }
  return fmt::format(
      "events {}, store {} and busy {}, drain {} and busy {}, depot {} and busy {}, "
      "free buffers {} of {}, serving {}, keeping {}, next deadline in {} s{}",
      events_.size(), store_commands_.size(), store_->busy(), drain_commands_.size(),
      drain_->busy(), peer_file_commands_.size(), peer_files_->busy(), pool_->free_count(),
      pool_->count(), serving_.free_count(), keeping_.free_count(),
      1e-9 * (static_cast<double>(job_->next_deadline_ns()) -
              static_cast<double>(around_.clock.monotonic_ns())),
      pool);
}

bool SimulatedAgent::idle() const {
  return events_.empty() && store_commands_.empty() && !store_->busy() && drain_commands_.empty() &&
         !drain_->busy() && peer_file_commands_.empty() && !peer_files_->busy();
}

void SimulatedAgent::step() {
  std::uint64_t choice =
      around_.random.between(1, std::accumulate(speeds_.begin(), speeds_.end(), std::uint64_t{0}));
  std::size_t thread = 0;
  while (choice > speeds_[thread]) choice -= speeds_[thread++];
  switch (thread) {
    case 0: return step_store();
    case 1: return step_drain();
    case 2: return step_peer_files();
    case 3: return take_event();
    default: return listen();
  }
}

void SimulatedAgent::listen() {
  job_->network();
  job_->pump();
}

void SimulatedAgent::take_event() {
  if (events_.empty()) return;
  const auto event = std::move(events_.front());
  events_.pop_front();
  event();
  job_->pump();
}

void SimulatedAgent::step_store() {
  if (!store_commands_.empty()) {
    agent::Command next = std::move(store_commands_.front());
    store_commands_.pop_front();
    handle(std::move(next));
  } else if (store_->busy()) {
    store_->reap(/*wait=*/true);
  }
}

void SimulatedAgent::handle(agent::Command command) {
  const bool removes_none = std::holds_alternative<agent::WriteChunk>(command) ||
                            std::holds_alternative<agent::ReadChunk>(command) ||
                            std::holds_alternative<agent::AppendEvent>(command);
  may_have_removed_ = may_have_removed_ || !removes_none;
  const auto* event = std::get_if<agent::AppendEvent>(&command);
  if (event != nullptr && event->line.find(R"("event":"local")") != std::string::npos) {
    retained_for_ = job_->state().run;
  }
  ++handled_;
  store_->handle(std::move(command));
}

void SimulatedAgent::step_drain() {
  if (!drain_commands_.empty()) {
    agent::DrainCommand next = std::move(drain_commands_.front());
    drain_commands_.pop_front();
    drain_->handle(std::move(next));
  } else if (drain_->busy()) {
    drain_->step();
  }
}

void SimulatedAgent::step_peer_files() {
  if (!peer_file_commands_.empty()) {
    agent::PeerFileCommand next = std::move(peer_file_commands_.front());
    peer_file_commands_.pop_front();
    peer_files_->handle(std::move(next));
  } else if (peer_files_->busy()) {
    peer_files_->step(/*wait=*/true);
  }
  peer_files_->close_idle();
}

}  // namespace backstay::simulated
