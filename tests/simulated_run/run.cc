#include "simulated_run/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace backstay::simulated {

namespace {

constexpr std::uint64_t step_ns_max = 100'000;
constexpr std::uint64_t patient_steps = 4'000;   // then time passes faster
constexpr std::uint64_t hurried_ns = 1'000'000;  // a step then
constexpr std::uint64_t steps_max = 400'000;     // of one wait
constexpr double dead_after_s = 0.2;

}  // namespace

Settings Settings::random(test::Random& random) {
  Settings settings;
  settings.hosts = static_cast<std::uint32_t>(random.between(1, 5));
  settings.ranks = settings.hosts * static_cast<std::uint32_t>(random.between(1, 2));
  settings.keep = static_cast<std::uint32_t>(random.between(1, 3));
  settings.durable = random.between(0, 3) == 0;
  settings.replicas = 0;
  settings.tolerates = 0;
  if (settings.hosts > 1 && random.between(0, 4) != 0) {
    settings.replicas = static_cast<std::uint32_t>(
        random.between(1, std::min<std::uint32_t>(2, settings.hosts - 1)));
    settings.tolerates = settings.replicas;
  }
  if (settings.hosts >= 3 && random.between(0, 2) == 0) {
    const std::uint32_t m = settings.hosts >= 4 && random.coin() ? 2 : 1;
    settings.parity = fmt::format("{},{}", settings.hosts >= m + 2 ? 2 : 1, m);
    settings.replicas = 0;
    settings.tolerates = m;
  }
  if (random.coin()) settings.network.delay_s_max = 0.005;
  if (random.between(0, 3) == 0) settings.network.cut_one_in = 2'000;
  if (random.between(0, 3) == 0) settings.network.busy_one_in = 20;
  return settings;
}

std::string Settings::describe() const {
  return fmt::format(
      "{} hosts, {} ranks, replicas {}, parity '{}', durable {}, keep {}, delay {} s, "
      "cut 1/{}, busy 1/{}",
      hosts, ranks, replicas, parity, durable, keep, network.delay_s_max, network.cut_one_in,
      network.busy_one_in);
}

SimulatedRun::SimulatedRun(std::uint64_t seed, Settings settings)
    : seed_(seed),
      settings_(std::move(settings)),
      random_(seed),
      network_(clock_, {.dead_after_s = dead_after_s}),
      around_{clock_, random_, network_, shared_, locks_, silent_, settings_.network} {
  if (std::getenv("BACKSTAY_SIMULATED_LOG") == nullptr) spdlog::set_level(spdlog::level::off);
  (void)shared_.make_directories(shared_dir);
  for (std::uint32_t count = 0; count < settings_.hosts; ++count) hosts_[next_host_++];
}

SimulatedRun::~SimulatedRun() = default;

void SimulatedRun::say(std::string what) {
  history_.push_back(
      fmt::format("{:>10.4f} s  {}", 1e-9 * static_cast<double>(clock_.monotonic_ns()), what));
}

void SimulatedRun::fail(const std::string& what) {
  say("BROKEN: " + what);
  if (!broken_.empty()) return;
  broken_ = what;
  for (const auto& [id, host] : hosts_) {
    if (host.agent) say(fmt::format("agent of host {}: {}", id, host.agent->describe()));
  }
}

std::string SimulatedRun::describe() const {
  return fmt::format("seed {}: {}\n{}\n{}\n{}", seed_, broken_, settings_.describe(),
                     fmt::join(history_, "\n"), promises_.describe());
}

// --- time ----------------------------------------------------------------------------------------

void SimulatedRun::step() {
  ++counts_.steps;
  meet_doom();
  clock_.advance(random_.between(1, step_ns_max));
  if (waited_ > patient_steps) hurry();
  std::uint64_t weights = 0;
  for (const auto& [id, host] : hosts_) weights += host.agent ? host.weight : 0;
  std::uint64_t choice = random_.between(0, weights + ranks_.size());
  for (auto& [id, host] : hosts_) {
    if (!host.agent) continue;
    if (choice < host.weight) {
      host.agent->step();
      return look(id);
    }
    choice -= host.weight;
  }
  if (choice < ranks_.size() && ranks_[choice]->has_mail()) ranks_[choice]->read_one();
}

// Nothing but time is missing: it passes faster, and no agent takes another for dead because of
// that.
void SimulatedRun::hurry() {
  clock_.advance(hurried_ns);
  for (auto& [id, host] : hosts_) {
    if (host.agent) host.agent->listen();
  }
}

// What the agent would answer a rank now, and what its disk lacks.
void SimulatedRun::look(HostId id) {
  Host& host = hosts_.at(id);
  agent::Job& job = host.agent->job();
  bool changed = host.agent->may_have_removed();
  const auto note = [&](VersionNumber number, const agent::StoredVersion& stored) {
    const Level level = job.level_of(number).level;
    if (level < Level::local) return;
    const bool news = promises_.announced({number, stored.record.run}, level);
    changed = news || changed;
    if (news && level == Level::durable) check_shared(number);
    ++counts_.announced[level];
  };
  if (job.state().run != 0) {  // its ranks may be gone, tools are answered all the same
    for (const auto& [number, row] : job.state().versions.rows()) {
      if (row.is_listed()) note(number, *row.disk);
      if (row.shared) note(number, *row.shared);
    }
    check_restarted(id);
  }
  if (changed) check_disks(id);
  check_vouched(id, changed);
}

bool SimulatedRun::run_until(const char* what, const Done& done) {
  for (waited_ = 0; !done(); ++waited_) {
    if (agent_died_ || !broken_.empty()) return false;
    if (waited_ == steps_max) {
      for (const auto& one : ranks_)
        say(fmt::format("rank {}: {}", one->number(), one->describe()));
      fail(fmt::format("it takes too long: {}", what));
      return false;
    }
    step();
  }
  return true;
}

void SimulatedRun::rest(std::uint64_t steps) {
  for (waited_ = 0; steps > 0 && broken_.empty(); --steps) step();
}

// --- the program: joining ------------------------------------------------------------------------

bool SimulatedRun::start() {
  run_ = random_.between(1, UINT32_MAX);
  nodes_.clear();
  for (const auto& [id, host] : hosts_) nodes_.push_back(id);
  if (random_.coin()) std::shuffle(nodes_.begin(), nodes_.end(), random_.engine());
  if (nodes_.size() > settings_.hosts) nodes_.resize(settings_.hosts);
  ranks_.clear();
  node_of_.clear();
  for (std::uint32_t number = 0; number < settings_.ranks; ++number) {
    ranks_.push_back(std::make_unique<SimulatedRank>(number));
    node_of_.push_back(static_cast<NodeId>(number * nodes_.size() / settings_.ranks));
  }
  const auto groups = parity_groups();
  promises_.begin_run(run_, nodes_, std::min<std::uint32_t>(settings_.tolerates, nodes_.size() - 1),
                      groups);
  restarted_from_ = latest_ = captured_ = {};
  say(fmt::format("start {} on hosts {}", run_, fmt::join(nodes_, " ")));
  return connect();
}

// Of the present run; empty: it has replicas, as it has no parity, or too few nodes for it.
protect::Groups SimulatedRun::parity_groups() const {
  if (settings_.parity.empty()) return {};
  const auto groups = protect::make_groups(parse_parity(settings_.parity).value(),
                                           std::vector<std::string>(nodes_.size()));
  return groups.ok() ? *groups : protect::Groups();
}

// Collective, also after an agent has died: all ranks connect again.
bool SimulatedRun::connect() {
  constexpr int tries = 20;
  for (int left = tries; left > 0 && broken_.empty(); --left) {
    stop_program();
    agent_died_ = false;
    clock_.advance(1'000);  // another incarnation
    for (const HostId id : nodes_) {
      Host& host = hosts_.at(id);
      if (host.agent) continue;
      host.agent = std::make_unique<SimulatedAgent>(
          around_, *host.disk, [this](agent::ConnectionId to, wire::Message message) {
            const auto at = rank_at_.find(to);
            if (at != rank_at_.end()) ranks_[at->second]->receive(std::move(message));
          });
    }
    bool refused = false;
    const bool parity = !parity_groups().empty();
    for (std::size_t number = 0; number < ranks_.size(); ++number) {
      SimulatedAgent& agent = *hosts_.at(host_of(number)).agent;
      const agent::ConnectionId connection = next_connection_++;
      rank_at_[connection] = number;
      connection_of_[number] = connection;
      rank(number).connect(
          [this, host = host_of(number), connection](const wire::Message& message) {
            const auto& at = hosts_.at(host).agent;
            if (!at) return;
            if (const Status sent = at->job().receive(connection, message); !sent.ok())
              fail("the agent refuses a message: " + sent.error().message());
          },
          agent.pool());
      wire::Hello hello;
      hello.job = "job";
      hello.run = run_;
      hello.rank = static_cast<Rank>(number);
      hello.ranks = static_cast<std::uint32_t>(ranks_.size());
      hello.node = node_of_[number];
      hello.nodes = static_cast<std::uint32_t>(nodes_.size());
      const auto first = std::find(node_of_.begin(), node_of_.end(), hello.node);
      hello.local_rank =
          static_cast<std::uint32_t>(number) - static_cast<std::uint32_t>(first - node_of_.begin());
      hello.local_ranks =
          static_cast<std::uint32_t>(std::count(node_of_.begin(), node_of_.end(), hello.node));
      hello.dir = local_dir;
      hello.keep = settings_.keep;
      hello.durable_dir = settings_.durable ? shared_dir : "";
      hello.drain_nodes_max = static_cast<std::uint32_t>(random_.between(0, 2));
      const auto most = static_cast<std::uint32_t>(nodes_.size() - 1);
      hello.parity = parity ? settings_.parity : "";
      if (!parity) hello.replicas = std::min(settings_.tolerates, most);
      hello.secret = std::string(64, 'a');
      if (const Status joined = agent.job().hello(connection, hello); !joined.ok()) {
        if (joined.error().code() != Code::busy) fail("hello: " + joined.error().message());
        refused = true;
      }
    }
    if (refused) {
      rest(2'000);
      continue;
    }
    const bool welcome = run_until("welcome", [&] {
      return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& one) {
        return one->welcome().has_value() || one->failure().has_value();
      });
    });
    if (!welcome) continue;
    const bool all = std::all_of(ranks_.begin(), ranks_.end(),
                                 [](const auto& one) { return one->welcome().has_value(); });
    if (!all) {
      say("refused: " + [&] {
        for (const auto& one : ranks_)
          if (one->failure()) return one->failure()->message();
        return std::string();
      }());
      rest(2'000);
      continue;
    }
    for (const auto& one : ranks_)
      next_version_ = std::max(next_version_, one->welcome()->newest + 1);
    if (exchange_addresses()) return true;
  }
  if (broken_.empty()) fail("the program cannot connect");
  return false;
}

bool SimulatedRun::exchange_addresses() {
  if (nodes_.size() == 1) return true;
  wire::Neighbours all;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const auto first = std::find(node_of_.begin(), node_of_.end(), node) - node_of_.begin();
    all.neighbours.push_back({node, ranks_[first]->welcome()->address, ""});
  }
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const auto first = std::find(node_of_.begin(), node_of_.end(), node) - node_of_.begin();
    SimulatedAgent& agent = *hosts_.at(nodes_[node]).agent;
    const Status told = agent.job().receive(connection_of_.at(first), all);
    if (!told.ok()) fail("neighbours: " + told.error().message());
  }
  return broken_.empty();
}

// Its connections end; the agents live on.
void SimulatedRun::stop_program() {
  for (const auto& [number, connection] : connection_of_) {
    const auto host = hosts_.find(host_of(number));
    rank(number).disconnect();
    if (host != hosts_.end() && host->second.agent)
      host->second.agent->job().disconnected(connection, /*goodbye=*/false);
  }
  connection_of_.clear();
  rank_at_.clear();
}

// --- faults -------------------------------------------------------------------------------------

void SimulatedRun::kill_agent(HostId host, End how) {
  Host& at = hosts_.at(host);
  if (!at.agent) return;
  at.agent->prepare_end(how);
  for (const auto& [number, connection] : connection_of_) {
    if (host_of(number) == host) rank(number).disconnect();
  }
  at.agent.reset();
  at.vouched = 0;
  agent_died_ = true;
  captured_ = {};
}

void SimulatedRun::power_off(HostId host, bool disk_is_lost) {
  kill_agent(host, End::powered_off);
  if (disk_is_lost) {
    promises_.lost(host);
    hosts_.erase(host);
  } else {
    hosts_.at(host).disk->crash(random_.between(1, UINT32_MAX));
  }
}

std::vector<HostId> SimulatedRun::some_hosts(std::uint32_t most) {
  std::vector<HostId> all;
  for (const auto& [id, host] : hosts_) all.push_back(id);
  std::shuffle(all.begin(), all.end(), random_.engine());
  all.resize(std::min<std::size_t>(all.size(), random_.between(1, std::max(most, 1u))));
  return all;
}

void SimulatedRun::meet_doom() {
  if (!doom_ || doom_->steps-- != 0) return;
  const Doom doom = *std::exchange(doom_, std::nullopt);
  if (hosts_.count(doom.host) == 0 || !hosts_.at(doom.host).agent) return;
  say(fmt::format("{} host {} {}", doom.loses_power ? "" : "the agent of", doom.host,
                  doom.loses_power ? "loses power" : "is killed"));
  if (doom.loses_power) return power_off(doom.host, /*disk_is_lost=*/false);
  kill_agent(doom.host, End::killed);
}

void SimulatedRun::fill_or_free(HostId host) {
  constexpr std::uint64_t left_bytes_max = 256 * 1024;  // a few versions
  Host& at = hosts_.at(host);
  at.full = !at.full;
  say(fmt::format("the disk of host {} {}", host, at.full ? "fills up" : "has room again"));
  at.disk->set_capacity(at.full ? at.disk->used_bytes() + random_.between(0, left_bytes_max)
                                : UINT64_MAX);
}

void SimulatedRun::free_all() {
  for (auto& [id, host] : hosts_) {
    if (host.full) fill_or_free(id);
  }
}

// Ends the present start of the program. True: its agents live on.
bool SimulatedRun::fault() {
  const auto dice = random_.between(0, 9);
  if (dice < 3) {
    say("the program is killed");
    stop_program();
    return true;
  }
  const bool lost = dice >= 6 && hosts_.size() > 1;
  const auto hit =
      some_hosts(lost ? std::min<std::uint32_t>(settings_.tolerates + 1,
                                                static_cast<std::uint32_t>(hosts_.size()) - 1)
                      : static_cast<std::uint32_t>(hosts_.size()));
  say(fmt::format("hosts {} {}", fmt::join(hit, " "),
                  lost ? "are lost with their disks" : "lose power"));
  stop_program();
  for (const HostId host : hit) power_off(host, lost);
  // Others take their place, or the job goes on with fewer.
  while (hosts_.size() < settings_.hosts && random_.between(0, 2) != 0) hosts_[next_host_++];
  return false;
}

// What happens between two faults that end the program. A disk is full for a version or two, and
// the next ones find room.
void SimulatedRun::move() {
  const auto full = std::ranges::find_if(nodes_, [this](HostId id) { return hosts_.at(id).full; });
  if (full != nodes_.end() && random_.between(0, 2) == 0) return fill_or_free(*full);
  const HostId host = nodes_[random_.between(0, nodes_.size() - 1)];
  const auto dice = random_.between(0, 19);
  if (dice < 12) {
    (void)checkpoint();
  } else if (dice < 16) {
    rest(random_.between(0, 5'000));
  } else if (dice < 18) {
    fill_or_free(host);
  } else {
    say(fmt::format("the agent of host {} is killed", host));
    kill_agent(host, End::killed);
  }
}

void SimulatedRun::live(unsigned starts) {
  bool all_live = false;
  for (; starts > 0 && broken_.empty(); --starts) {
    for (auto& [id, host] : hosts_) host.weight = static_cast<unsigned>(random_.between(1, 6));
    if (!all_live || random_.coin()) free_all();  // what was lost needs room to be rebuilt
    if (random_.between(0, 4) == 0) {
      const auto hit = some_hosts(1);
      doom_ = Doom{hit.front(), random_.between(0, 20'000), random_.coin()};
    }
    if (!start()) return;
    do {
      if (agent_died_ && !connect()) return;
      if (!(nodes_.size() == 1 ? restart_alone() : restart())) return;
    } while (agent_died_);
    doom_.reset();
    for (auto moves = random_.between(0, 8); moves > 0 && broken_.empty(); --moves) {
      move();
      if (agent_died_ && !connect()) return;
    }
    rest(random_.between(0, 3) == 0 ? 0 : random_.between(0, 10'000));
    check_room();
    all_live = fault();
    rest(random_.coin() ? 0 : random_.between(0, 10'000));
  }
}

}  // namespace backstay::simulated
