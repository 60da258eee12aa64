#include "sim/chaos.h"

#include <algorithm>
#include <optional>

namespace backstay::sim {

namespace {

using tree::RunVersion;
using tree::Tree;

constexpr RunId first_run = 100;
constexpr std::uint64_t barrier = 7;

tree::Settings settings_of(const Plan& plan) {
  tree::Settings settings;
  settings.run = first_run;
  settings.nodes = plan.nodes;
  settings.arity = plan.arity;
  settings.strangers_max = 2;
  return settings;
}

class History : public Checker {
 public:
  History(const Plan& plan, std::uint64_t seed)
      : plan_(plan), world_(settings_of(plan), seed, *this), entered_(plan.nodes) {
    watch(world_);
    world_.weather = plan.weather;
    world_.says_recorded_too_early = plan.says_recorded_too_early;
    world_.says_held_too_early = plan.says_held_too_early;
  }

  Outcome run() {
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      world_.at(world_.random().below(500), [this, node] { start(node); });
    }
    for (std::uint32_t tick = 0; tick < plan_.chaos_ticks; ++tick) {
      faults();
      work(tick);
      world_.run_for(tick_time);
    }
    calm_down();
    work_is_done();
    one_dies();
    next_run();
    outcome_.violations.insert(outcome_.violations.end(), violations().begin(), violations().end());
    outcome_.announcements = announcements();
    outcome_.barrier_rounds = rounds(barrier);
    outcome_.messages = world_.messages();
    outcome_.connections_max = connections_max();
    return outcome_;
  }

  void released(NodeId node, std::uint64_t which, std::uint64_t round) override {
    Checker::released(node, which, round);
    if (which == barrier) enter_soon(node, round + 1);
  }

 private:
  struct Holding {
    NodeId node;
    VersionNumber version;
    Level level;
  };

  NodeId any() { return world_.random().below(plan_.nodes); }
  // Often the root or one near it: those hurt most.
  NodeId victim() {
    return world_.chance(40) ? world_.random().below(std::min(plan_.nodes, 4U)) : any();
  }

  void start(NodeId node) {
    if (world_.alive(node)) return;
    world_.start(node);
    enter_soon(node, std::max<std::uint64_t>(entered_[node], 1));
  }

  void enter_soon(NodeId node, std::uint64_t round) {
    world_.with(node, world_.random().below(300), [this, node, round](Tree& tree) {
      if (round < entered_[node]) return;
      entered_[node] = round;
      entered(node, barrier, round);
      tree.enter(barrier, round);
    });
  }

  void faults() {
    if (world_.chance(plan_.kills_percent)) kill(victim());
    if (world_.chance(plan_.stops_percent)) {
      const NodeId node = victim();
      world_.stop(node);
      world_.at(world_.random().below(20 * tick_time), [this, node] { world_.go_on(node); });
    }
    if (world_.chance(plan_.cuts_percent)) {
      const std::uint32_t parts = 2 + world_.random().below(2);
      for (NodeId node = 0; node < plan_.nodes; ++node) {
        world_.agent(node).part = world_.random().below(parts);
      }
      world_.at(world_.random().below(50 * tick_time), [this] { heal(); });
    }
  }

  void heal() {
    for (NodeId node = 0; node < plan_.nodes; ++node) world_.agent(node).part = 0;
  }

  void kill(NodeId node) {
    if (!world_.alive(node)) return;
    world_.kill(node);
    if (world_.chance(50)) {
      for (NodeId other = 0; other < plan_.nodes; ++other) {
        world_.with(other, 1, [node](Tree& tree) { tree.unreachable(node); });
      }
    }
    // It may have died before anybody else knew its last facts.
    for (auto& [name, value] : latest_) {
      if (name.first == node) value.reset();
    }
    if (world_.chance(plan_.disks_percent)) {
      world_.destroy_disk(node);
      destroyed();
    }
    world_.at(1 + world_.random().below(40 * tick_time), [this, node] { start(node); });
  }

  void work(std::uint32_t tick) {
    if (tick % 12 == 5) new_version();
    if (world_.chance(30)) publish(any());
    for (std::size_t i = holdings_.size(); i-- > 0;) {
      if (world_.chance(70) || !world_.alive(holdings_[i].node)) continue;
      hold(holdings_[i]);
      holdings_.erase(holdings_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void new_version() {
    ++version_;
    // The last part of some versions never comes.
    const NodeId missing = world_.chance(30) ? any() : plan_.nodes;
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      if (node != missing) holdings_.push_back({node, version_, Level::local});
    }
  }

  void hold(Holding holding) {
    world_.hold(holding.node, holding.version, holding.level);
    if (holding.level == Level::durable) return;
    holding.level = static_cast<Level>(static_cast<int>(holding.level) + 1);
    holdings_.push_back(holding);
  }

  void publish(NodeId node) {
    world_.with(node, 0, [this, node](Tree& tree) {
      const std::string name = "fact" + std::to_string(world_.random().below(3));
      const std::string value = std::to_string(++facts_);
      published(node, world_.agent(node).incarnation, name, value);
      latest_[{node, name}] = value;
      if (!tree.publish(name, value).ok()) fail("a fact was refused");
    });
  }

  void fail(const std::string& what) { outcome_.violations.push_back(what); }

  // The faults stop; until all are one tree in its undamaged shape, with no node missing.
  void calm_down() {
    world_.weather = {};
    heal();
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      if (world_.agent(node).stopped) world_.go_on(node);
      start(node);
    }
    while (!one_tree()) {
      if (++outcome_.ticks_to_heal > plan_.calm_ticks_max)
        return fail("no single tree: " + why_not());
      world_.run_for(tick_time);
    }
  }

  bool one_tree() {
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      const Tree& tree = *world_.agent(node).tree;
      if (tree.root() != 0 || !tree.at_home() || !tree.lost().empty()) return false;
    }
    return world_.agent(0).tree->present().count() == plan_.nodes;
  }

  std::string why_not() {
    std::string why;
    for (NodeId node = 0; node < plan_.nodes && why.size() < 200; ++node) {
      const Tree& tree = *world_.agent(node).tree;
      if (tree.root() == 0 && tree.at_home() && tree.lost().empty()) continue;
      why += "node " + std::to_string(node) + " root " + std::to_string(tree.root()) +
             (tree.at_home() ? "" : " not at home") + (tree.lost().empty() ? "" : " misses some") +
             "; ";
    }
    return why + std::to_string(world_.agent(0).tree->present().count()) + " present at node 0";
  }

  // In the calm: every announced level is known to all, and a new version, barrier and fact get
  // through.
  void work_is_done() {
    holdings_.clear();
    ++version_;
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      for (const Level level : {Level::local, Level::protected_, Level::durable}) {
        world_.at(world_.random().below(500), [=, this] { world_.hold(node, version_, level); });
      }
    }
    publish(any());
    const std::uint64_t round = rounds(barrier);
    world_.run_for(60 * tick_time);
    auto expected = told();
    for (const auto& [version, known] : world_.agent(0).disk.versions) {
      expected[version] = std::max(expected[version], held_by_all(version));
    }
    if (expected[{first_run, version_}] != Level::durable)
      fail("the last version was not announced");
    if (rounds(barrier) < round + 2) fail("the barrier is stuck");
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      const Tree& tree = *world_.agent(node).tree;
      for (const auto& [version, level] : expected) {
        if (tree.announced(version) < level) {
          fail("node " + std::to_string(node) + " does not know the level of version " +
               std::to_string(version.version) + " any more");
        }
      }
      for (const auto& [name, value] : latest_) same_fact(tree, node, name, value);
    }
  }

  Level held_by_all(RunVersion version) {
    Level level = Level::durable;
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      const auto& versions = world_.agent(node).disk.versions;
      const auto known = versions.find(version);
      level = std::min(level, known == versions.end() ? Level::none : known->second.held);
    }
    return level;
  }

  // One dies for good: the others are one tree without it, and all know that it is lost.
  void one_dies() {
    if (plan_.nodes == 1) return;
    const NodeId dead = victim();
    world_.kill(dead);
    const tree::Settings& settings = world_.settings();
    world_.run_for((settings.lost_ticks + 2 * settings.grace_ticks + 60) * tick_time);
    const NodeId root = world_.agent(dead == 0 ? 1 : 0).tree->root();
    for (NodeId node = 0; node < plan_.nodes; ++node) {
      if (node == dead) continue;
      const Tree& tree = *world_.agent(node).tree;
      if (tree.lost() != tree::NodeSet::range(dead, 1) || tree.root() != root) {
        fail("node " + std::to_string(node) + " does not know that node " + std::to_string(dead) +
             " is lost");
      }
    }
  }

  void same_fact(const Tree& tree, NodeId node, const std::pair<NodeId, std::string>& name,
                 const std::optional<std::string>& value) {
    const tree::Fact* fact = tree.fact(name.first, name.second);
    const tree::Fact* other = world_.agent(0).tree->fact(name.first, name.second);
    if (value && (fact == nullptr || fact->value != *value)) {
      fail("node " + std::to_string(node) + " does not know the last " + name.second);
    }
    if ((fact == nullptr) != (other == nullptr) || (fact && fact->value != other->value)) {
      fail("nodes 0 and " + std::to_string(node) + " do not agree on a fact");
    }
  }

  // Everything stops at once; up to two nodes never come back.
  void next_run() {
    std::vector<Disk> disks;
    for (NodeId node = 0; node < plan_.nodes; ++node) disks.push_back(world_.agent(node).disk);
    for (std::uint32_t lost = world_.random().below(3); lost > 0 && disks.size() > 1; --lost) {
      disks.erase(disks.begin() + world_.random().below(static_cast<std::uint32_t>(disks.size())));
    }
    Plan plan = plan_;
    plan.nodes = static_cast<std::uint32_t>(disks.size());
    tree::Settings settings = settings_of(plan);
    ++settings.run;
    Checker checker;
    World world(settings, world_.random().next(), checker);
    std::map<RunVersion, Level> decided;
    for (NodeId node = 0; node < plan.nodes; ++node) {
      world.agent(node).disk = disks[node];
      world.agent(node).disk.destroyed = 0;
      for (const auto& [version, known] : disks[node].versions) {
        decided[version] = std::max(decided[version], known.recorded);
      }
    }
    checker.watch(world, decided);
    for (NodeId node = 0; node < plan.nodes; ++node) world.start(node);
    world.run_for(60 * tick_time);
    for (const auto& violation : checker.violations()) fail("next run: " + violation);
    for (const auto& [version, level] : told()) {
      for (NodeId node = 0; node < plan.nodes; ++node) {
        if (world.agent(node).tree->announced(version) < level) {
          return fail("the next run does not know the level of version " +
                      std::to_string(version.version));
        }
      }
    }
  }

  Plan plan_;
  World world_;
  Outcome outcome_;
  VersionNumber version_ = 0;
  std::vector<Holding> holdings_;
  std::vector<std::uint64_t> entered_;
  std::uint64_t facts_ = 0;
  std::map<std::pair<NodeId, std::string>, std::optional<std::string>> latest_;
};

}  // namespace

Plan plan_of(std::uint64_t seed) {
  SplitMix64 random(seed);
  Plan plan;
  plan.nodes = 1 + random.below(40);
  plan.arity = 2 + random.below(4);
  plan.weather.loss_percent = random.below(15);
  plan.weather.double_percent = random.below(10);
  plan.weather.late_percent = random.below(5);
  plan.weather.delay_max = 1 + random.below(60);
  plan.kills_percent = random.below(25);
  plan.disks_percent = random.below(3) == 0 ? 30 : 0;
  plan.cuts_percent = random.below(5);
  plan.stops_percent = random.below(5);
  return plan;
}

Outcome play(const Plan& plan, std::uint64_t seed) { return History(plan, seed).run(); }

}  // namespace backstay::sim
