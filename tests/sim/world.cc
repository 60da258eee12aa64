#include "sim/world.h"

#include <algorithm>

#include "base/check.h"

namespace backstay::sim {

using tree::Tree;

void Disk::hold(tree::RunVersion version, Level level) {
  tree::Remembered& known = versions[version];
  known.version = version;
  known.held = std::max(known.held, level);
}

void Disk::record(tree::RunVersion version, Level level) {
  tree::Remembered& known = versions[version];
  known.version = version;
  known.recorded = std::max(known.recorded, level);
}

World::World(tree::Settings settings, std::uint64_t seed, Watcher& watcher)
    : settings_(std::move(settings)), random_(seed), watcher_(watcher), agents_(settings_.nodes) {
  settings_.address_of = [](NodeId node) { return "host" + std::to_string(node); };
}

void World::start(NodeId node) {
  Agent& agent = agents_[node];
  BACKSTAY_CHECK(!agent.tree);
  std::vector<tree::Remembered> remembered;
  for (const auto& [version, known] : agent.disk.versions) remembered.push_back(known);
  const tree::Self self{node, ++agent.incarnation, settings_.address_of(node)};
  agent.tree = std::make_unique<Tree>(settings_, self, random_.next(), remembered);
  agent.stopped = false;
  agent.tree->start();
  drain(node);
  at(random_.below(tick_time), [this, node, life = agent.incarnation] { tick(node, life); });
}

void World::kill(NodeId node) {
  agents_[node].tree.reset();
  agents_[node].waiting.clear();
}

void World::go_on(NodeId node) {
  agents_[node].stopped = false;
  for (const auto& what : std::exchange(agents_[node].waiting, {})) what();
}

void World::tick(NodeId node, std::uint64_t incarnation) {
  if (agents_[node].incarnation != incarnation || !alive(node)) return;
  if (!agents_[node].stopped) if_alive(node, incarnation, [](Tree& tree) { tree.tick(); });
  // No two agents' ticks keep their distance.
  at(tick_time - 5 + random_.below(11), [this, node, incarnation] { tick(node, incarnation); });
}

void World::if_alive(NodeId node, std::uint64_t incarnation,
                     const std::function<void(Tree&)>& what) {
  Agent& agent = agents_[node];
  if (!agent.tree || agent.incarnation != incarnation) return;
  if (agent.stopped) {
    agent.waiting.emplace_back(
        [this, node, incarnation, what] { if_alive(node, incarnation, what); });
    return;
  }
  what(*agent.tree);
  drain(node);
}

void World::with(NodeId node, Time delay, std::function<void(Tree&)> what) {
  at(delay,
     [this, node, what = std::move(what)] { if_alive(node, agents_[node].incarnation, what); });
}

void World::hold(NodeId node, VersionNumber version, Level level) {
  if (!alive(node)) return;
  const auto life = agents_[node].incarnation;
  const auto say = [this, node, life, version, level] {
    if_alive(node, life, [=](Tree& tree) { tree.held(version, level); });
  };
  if (says_held_too_early) return say();
  agents_[node].disk.hold({settings_.run, version}, level);
  at(random_.below(50), say);
}

void World::persist(NodeId node, const tree::Record& record) {
  const auto life = agents_[node].incarnation;
  const auto say = [this, node, life, record] {
    if_alive(node, life, [=](Tree& tree) { tree.recorded(record.version, record.level); });
  };
  if (says_recorded_too_early) at(0, say);
  at(1 + random_.below(60), [this, node, life, record, say] {
    if (!alive(node) || agents_[node].incarnation != life) return;
    agents_[node].disk.record(record.version, record.level);
    at(random_.below(30), say);
  });
}

void World::drain(NodeId node) {
  Agent& agent = agents_[node];
  for (const tree::Output& output : agent.tree->take()) {
    if (const auto* sent = std::get_if<tree::Send>(&output)) {
      carry(node, sent->to.node, sent->message);
    } else if (const auto* record = std::get_if<tree::Record>(&output)) {
      persist(node, *record);
    } else if (const auto* announce = std::get_if<tree::Announce>(&output)) {
      watcher_.announced(node, announce->version, announce->level);
    } else if (const auto* released = std::get_if<tree::Released>(&output)) {
      watcher_.released(node, released->barrier, released->round);
    } else if (const auto* fact = std::get_if<tree::Fact>(&output)) {
      watcher_.delivered(node, *fact);
    }
  }
  watcher_.stepped(node);
}

void World::carry(NodeId from, NodeId to, const tree::Message& message) {
  ++messages_;
  BACKSTAY_CHECK(to < nodes());
  auto packet = wire::tree::encode(message);
  BACKSTAY_CHECK(packet.ok());
  for (int copies = chance(weather.double_percent) ? 2 : 1; copies > 0; --copies) {
    if (chance(weather.loss_percent)) continue;
    const Time most = chance(weather.late_percent) ? weather.late_max : weather.delay_max;
    at(1 + random_.below(static_cast<std::uint32_t>(most)), [this, from, to, packet = *packet] {
      if (agents_[from].part != agents_[to].part) return;
      // It arrives at the agent that lives there now, also at the next incarnation.
      if_alive(to, agents_[to].incarnation, [from, packet](Tree& tree) {
        auto back = wire::tree::decode(packet);
        BACKSTAY_CHECK(back.ok());
        tree.receive(from, *back);
      });
    });
  }
}

void World::at(Time delay, std::function<void()> what) {
  events_.push({now_ + delay, ++order_, std::move(what)});
}

void World::run_for(Time time) {
  const Time end = now_ + time;
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.what();
  }
  now_ = end;
}

}  // namespace backstay::sim
