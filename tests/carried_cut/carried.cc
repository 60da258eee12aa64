#include "carried_cut/carried.h"

#include <algorithm>
#include <utility>

namespace backstay::agent::test {

namespace {
constexpr std::uint64_t tick_ns = 500'000'000;
// Nothing but the agents ends a cut; or the deadline does, now and then.
constexpr std::uint64_t for_ever_ms = 86'400'000, soon_ms = 20'000;
}  // namespace

CarriedRun::CarriedRun(std::uint64_t seed, const Limits& limits)
    : limits_(limits), random_(seed), asks_(limits.asks), faults_(limits.faults) {
  arity_ = 2 + random_.below(4);
  timeout_ms_ = limits_.faults > 0 && random_.below(4) == 0 ? soon_ms : for_ever_ms;
  scene_ = cut::random_scene(random_, ranks(), limits_.calls);
  scene_.requests = 0;
  scene_.kills = limits_.ranks_die ? 1 : 0;
  scene_.reported = [this](cut::RankNumber rank, const cut::Report& it) { reported(rank, it); };
  scene_.imaged = [this](cut::RankNumber rank) { imaged(rank); };
  world_ = std::make_unique<cut::World>(scene_);
  agents_.resize(limits_.nodes);
  for (NodeId node = 0; node < limits_.nodes; ++node) start(node);
}

std::vector<cut::RankNumber> CarriedRun::ranks_of(NodeId node) const {
  std::vector<cut::RankNumber> some;
  for (std::uint32_t i = 0; i < limits_.ranks_a_node; ++i)
    some.push_back(node * limits_.ranks_a_node + i);
  return some;
}

// --- agents -------------------------------------------------------------------------------------

void CarriedRun::start(NodeId node) {
  Agent& agent = agents_[node];
  agent.incarnation = 1000 * ++lives_;
  tree::Settings settings;
  settings.run = 7;
  settings.nodes = limits_.nodes;
  settings.arity = arity_;
  settings.address_of = [](NodeId other) { return std::to_string(other); };
  agent.tree = std::make_unique<tree::Tree>(settings, tree::Self{node, agent.incarnation, ""},
                                            random_.next(), std::vector<tree::Remembered>{});
  agent.relay =
      std::make_unique<CutRelay>(CutFacts{node, "n" + std::to_string(node), limits_.nodes, ranks(),
                                          limits_.ranks_a_node, agent.incarnation});
  agent.held = 0;
  agent.given_up.clear();
  agent.newest = agent.disk.empty() ? 0 : agent.disk.rbegin()->first;
  agent.tree->start();
  unfound_.insert(node);
  collect(node);
}

void CarriedRun::kill(NodeId node) {
  Agent& agent = agents_[node];
  agent.tree.reset();
  agent.relay.reset();
  agent.ended.clear();
  unfound_.erase(node);
  lose_ranks_of(node);
  for (NodeId other = 0; other < limits_.nodes; ++other) {
    if (other != node) break_connection(node, other);
    net_[{other, node}].clear();
    deaf_.erase({node, other});
  }
}

void CarriedRun::break_connection(NodeId one, NodeId other) {
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    auto& queue = net_[{from, to}];
    queue.resize(random_.below(static_cast<std::uint32_t>(queue.size()) + 1));
    queue.emplace_back(Lost{});
    deaf_.insert({to, from});
  }
}

void CarriedRun::lose_ranks_of(NodeId node) {
  for (const cut::RankNumber rank : ranks_of(node)) {
    parts_[rank] = {};
    world_->lose_agent(rank);
  }
}

void CarriedRun::find_ranks_of(NodeId node) {
  unfound_.erase(node);
  for (const cut::RankNumber rank : ranks_of(node)) {
    if (world_->process(rank).dead) continue;
    see(node);
    agents_[node].relay->joined(rank);
    world_->find_agent(rank);
    if (wanting_.contains(rank)) ask(rank);
  }
  collect(node);
}

void CarriedRun::ask(cut::RankNumber rank) {
  wanting_.insert(rank);
  Agent& agent = agents_[node_of(rank)];
  if (!agent.relay || unfound_.contains(node_of(rank))) return;
  see(node_of(rank));
  (void)agent.relay->receive(rank, wire::AskCut{0, timeout_ms_});
  collect(node_of(rank));
}

void CarriedRun::send(NodeId from, NodeId to, Packet packet) {
  if (deaf_.contains({from, to})) return;
  if (!agents_[to].tree) {  // nobody listens
    net_[{to, from}].emplace_back(Lost{});
    deaf_.insert({from, to});
    return;
  }
  net_[{from, to}].push_back(std::move(packet));
}

void CarriedRun::see(NodeId node) {
  Agent& agent = agents_[node];
  const auto present = static_cast<std::uint32_t>(agent.tree->present().count());
  agent.relay->see(agent.tree->links(), present, agent.newest, now_ns_);
}

void CarriedRun::collect(NodeId node) {
  Agent& agent = agents_[node];
  if (!agent.tree) return;
  for (const tree::Output& output : agent.tree->take()) {
    if (const auto* out = std::get_if<tree::Send>(&output)) send(node, out->to.node, out->message);
  }
  see(node);
  for (const CutOutput& output : agent.relay->take()) {
    std::visit([this, node](const auto& one) { on(node, one); }, output);
  }
}

// --- what relays order --------------------------------------------------------------------------

void CarriedRun::on(NodeId node, const TellRank& it) {
  if (unfound_.contains(node)) return;
  if (const auto* over = std::get_if<wire::CutOver>(&it.message)) {
    if (over->code != Code::again) wanting_.erase(it.rank);
    return;
  }
  auto whole = parts_[it.rank].put(std::get<wire::CutOrder>(it.message));
  if (!whole.ok()) outcome_.broken = "a malformed order";
  if (whole.ok() && whole->has_value()) world_->give(it.rank, **whole);
}

void CarriedRun::on(NodeId node, const HoldVersion& it) {
  agents_[node].held = it.version;
  if (node == 0 && limits_.faults == 0) world_->check_cut();
}

void CarriedRun::on(NodeId node, const LetVersionGo&) {
  Agent& agent = agents_[node];
  const VersionNumber version = std::exchange(agent.held, 0);
  if (agent.ended.contains(version)) seal(node, version);
}

void CarriedRun::on(NodeId node, const CutGivenUp& it) {
  outcome_.reasons.insert(it.why);
  if (it.version == 0) return;
  Agent& agent = agents_[node];
  agent.held = 0;
  agent.newest = std::max(agent.newest, it.version);
  agent.given_up.insert(it.version);
  agent.ended.erase(it.version);
}

void CarriedRun::on(NodeId, const CutEnded& it) {
  ++(it.how.code == Code::ok ? outcome_.saved : outcome_.given_up);
}

void CarriedRun::reported(cut::RankNumber rank, const cut::Report& report) {
  const NodeId node = node_of(rank);
  if (!agents_[node].relay || unfound_.contains(node)) return;
  see(node);
  const auto parts = cut::as_messages(report);
  for (const wire::CutReport& part : *parts) {
    const auto taken = agents_[node].relay->receive(rank, part);
    if (!taken || !taken->ok()) outcome_.broken = "a report is refused";
  }
}

void CarriedRun::imaged(cut::RankNumber rank) {
  const NodeId node = node_of(rank);
  auto image = world_->take_image(rank);
  Agent& agent = agents_[node];
  const VersionNumber version = world_->process(rank).version;
  if (!image || !agent.relay || unfound_.contains(node)) return;
  if (agent.given_up.contains(version)) return;
  if (version <= agent.newest && !agent.ended.contains(version))
    outcome_.broken = "a version has the number of an older one";
  agent.newest = std::max(agent.newest, version);
  agent.ended[version].insert_or_assign(rank, std::move(*image));
  if (agent.held != version) seal(node, version);
}

void CarriedRun::seal(NodeId node, VersionNumber version) {
  Agent& agent = agents_[node];
  if (agent.ended[version].size() < limits_.ranks_a_node) return;
  agent.disk[version] = std::move(agent.ended[version]);
  agent.ended.erase(version);
  look_at(version);
}

// It is complete once every disk has its part.
void CarriedRun::look_at(VersionNumber version) {
  std::vector<cut::World::Image> images;
  for (const Agent& agent : agents_) {
    const auto part = agent.disk.find(version);
    if (part == agent.disk.end()) return;
    for (const auto& [rank, image] : part->second) images.push_back(image);
  }
  ++outcome_.complete;
  complete_.insert(version);
  const std::string why = world_->start_from(images);
  if (!why.empty()) outcome_.broken = "version " + std::to_string(version) + " is no cut: " + why;
}

// --- what happens -------------------------------------------------------------------------------

bool CarriedRun::deliver_one() {
  std::vector<std::pair<NodeId, NodeId>> some;
  for (const auto& [pair, queue] : net_) {
    if (!queue.empty()) some.push_back(pair);
  }
  if (some.empty()) return false;
  const auto chosen = some[random_.below(static_cast<std::uint32_t>(some.size()))];
  const auto from = chosen.first;
  const auto to = chosen.second;
  const Packet packet = std::move(net_[{from, to}].front());
  net_[{from, to}].pop_front();
  Agent& agent = agents_[to];
  if (std::holds_alternative<Lost>(packet)) deaf_.erase({to, from});
  if (!agent.tree) return true;
  if (const auto* message = std::get_if<tree::Message>(&packet)) {
    agent.tree->receive(from, *message);
  } else if (const auto* told = std::get_if<wire::peer::Message>(&packet)) {
    see(to);
    std::visit(
        [&]<typename M>(const M& one) {
          if constexpr (requires { agent.relay->on(from, one); }) agent.relay->on(from, one);
        },
        *told);
  } else {
    agent.tree->unreachable(from);
  }
  collect(to);
  return true;
}

void CarriedRun::tick() {
  now_ns_ += tick_ns;
  for (NodeId node = 0; node < limits_.nodes; ++node) {
    if (!agents_[node].tree) continue;
    agents_[node].tree->tick();
    see(node);
    agents_[node].relay->pump();
    collect(node);
  }
}

void CarriedRun::fault(bool at_0) {
  --faults_;
  ++outcome_.faults;
  const NodeId node = at_0 ? 0 : random_.below(limits_.nodes);
  switch (random_.below(limits_.ranks_die ? 5 : 4)) {
    case 0:
      if (agents_[node].tree) kill(node);
      return;
    case 1:
      break_connection(node, (node + 1 + random_.below(limits_.nodes)) % limits_.nodes);
      return;
    case 2: {  // along the tree, where it hurts
      if (!agents_[node].tree) return;
      const tree::Links links = agents_[node].tree->links();
      if (links.parent && agents_[*links.parent].tree) break_connection(node, *links.parent);
      return;
    }
    case 3: return reconnect(node);
    default: kill_rank();
  }
}

// As all ranks do when an agent of their run was lost.
void CarriedRun::reconnect(NodeId node) {
  Agent& agent = agents_[node];
  if (!agent.relay || unfound_.contains(node)) return;
  for (const cut::RankNumber rank : ranks_of(node)) {
    if (world_->process(rank).dead) continue;
    see(node);
    agent.relay->left(rank, /*goodbye=*/true);
    agent.ended.clear();
    collect(node);
  }
  lose_ranks_of(node);
  unfound_.insert(node);
}

void CarriedRun::kill_rank() {
  if (std::exchange(died_, true)) return;
  const cut::RankNumber rank = random_.below(ranks());
  world_->apply({cut::Action::What::kill, rank, 0});
  Agent& agent = agents_[node_of(rank)];
  wanting_.erase(rank);
  if (!agent.relay || unfound_.contains(node_of(rank))) return;
  see(node_of(rank));
  agent.ended.clear();  // a version in the making is given up for all
  agent.relay->left(rank, /*goodbye=*/false);
  collect(node_of(rank));
}

void CarriedRun::one_step() {
  const std::uint32_t what = random_.below(1000);
  if (what == 0 && asks_ > 0) {
    --asks_;
    return ask(random_.below(ranks()));
  }
  // Most of all while a version is held back.
  const bool held = std::ranges::any_of(agents_, [](const Agent& one) { return one.held != 0; });
  if (faults_ > 0 && what < (held ? 40 : 2)) return fault(/*at_0=*/held && random_.below(3) == 0);
  // A network that is slower than the tree's patience is a fault too.
  if (what < (limits_.faults == 0 ? 3 : 6)) return tick();
  const NodeId node = random_.below(limits_.nodes);
  if (what < 20 && !agents_[node].tree) return start(node);
  if (what < 60 && unfound_.contains(node)) return find_ranks_of(node);
  if (what < 200 && agents_[node].tree) {
    see(node);
    agents_[node].relay->pump();
    return collect(node);
  }
  if (what < 600 && deliver_one()) return;
  auto actions = world_->enabled();
  std::erase_if(actions, [](const auto& it) { return it.what == cut::Action::What::kill; });
  if (!actions.empty()) {
    world_->apply(actions[random_.below(static_cast<std::uint32_t>(actions.size()))]);
  } else if (!deliver_one() && random_.below(20) == 0) {
    tick();
  }
}

// The tree is one, and all ranks have their agents.
void CarriedRun::settle() {
  for (int rounds = 0; rounds < 400; ++rounds) {
    for (NodeId node = 0; node < limits_.nodes; ++node) {
      if (!agents_[node].tree) start(node);
      if (unfound_.contains(node)) find_ranks_of(node);
    }
    while (deliver_one()) {
    }
    const bool at_home =
        std::ranges::all_of(agents_, [](const Agent& one) { return one.tree->at_home(); });
    if (at_home && agents_[0].tree->present().count() == limits_.nodes) return;
    tick();
  }
  outcome_.broken = "the agents do not come to one tree";
}

bool CarriedRun::is_at_rest() const {
  auto actions = world_->enabled();
  std::erase_if(actions, [](const auto& it) { return it.what == cut::Action::What::kill; });
  const bool quiet = std::ranges::all_of(net_, [](const auto& it) { return it.second.empty(); });
  return quiet && actions.empty() && (died_ || wanting_.empty()) && asks_ == 0;
}

Outcome CarriedRun::play() {
  settle();
  for (int step = 0; step < 40'000 && outcome_.broken.empty(); ++step) {
    if (is_at_rest() && faults_ == 0) break;
    one_step();
    if (!world_->broken.empty()) outcome_.broken = world_->broken;
  }
  faults_ = 0;
  if (outcome_.broken.empty()) judge();
  return outcome_;
}

// No more faults: all comes to rest, and a cut that is asked for now is saved, or says why not.
void CarriedRun::judge() {
  settle();
  asks_ = 0;
  const std::size_t before = complete_.size();
  cut::RankNumber rank = 0;
  while (world_->process(rank).dead) ++rank;
  ask(rank);
  for (int step = 0; step < 400'000 && outcome_.broken.empty(); ++step) {
    if (is_at_rest()) break;
    one_step();
    if (!world_->broken.empty()) outcome_.broken = world_->broken;
  }
  if (!outcome_.broken.empty()) return;
  if (!is_at_rest()) outcome_.broken = "it does not come to rest";
  if (outcome_.broken.empty()) outcome_.broken = world_->wrong_at_rest();
  for (cut::RankNumber one = 0; one < ranks(); ++one) {
    const cut::Process& process = world_->process(one);
    if (!process.dead && process.in_cut && outcome_.broken.empty())
      outcome_.broken = "rank " + std::to_string(one) + " stays in a cut";
  }
  if (!outcome_.broken.empty()) return;
  if (!died_ && complete_.size() == before) outcome_.broken = "the last cut has no version";
  if (limits_.faults == 0 && outcome_.given_up > 0) {
    outcome_.broken = "a cut was given up for no reason: " + *outcome_.reasons.begin();
  }
}

}  // namespace backstay::agent::test
