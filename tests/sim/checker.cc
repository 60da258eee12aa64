#include "sim/checker.h"

#include <algorithm>

namespace backstay::sim {

namespace {

std::string name_of(tree::RunVersion version) {
  return "version " + std::to_string(version.version) + " of run " + std::to_string(version.run);
}

}  // namespace

void Checker::watch(World& world, std::map<tree::RunVersion, Level> decided) {
  world_ = &world;
  decided_ = std::move(decided);
}

void Checker::broken(const std::string& what) {
  if (violations_.size() < 10) {
    violations_.push_back("at " + std::to_string(world_->now()) + ": " + what);
  }
}

// A destroyed disk is the fault itself: what it had held does not count against the tree.
void Checker::announced(NodeId node, tree::RunVersion version, Level level) {
  ++announcements_;
  if (sound_[version] >= level) return;
  const std::size_t broken_before = violations_.size();
  const bool of_this_run = version.run == world_->settings().run;
  for (NodeId member = 0; member < world_->nodes(); ++member) {
    const Disk& disk = world_->agent(member).disk;
    const auto known = disk.versions.find(version);
    const Level held = known == disk.versions.end() ? Level::none : known->second.held;
    const Level recorded = known == disk.versions.end() ? Level::none : known->second.recorded;
    const std::string what = "node " + std::to_string(node) + " got the announcement that " +
                             name_of(version) + " is " + std::string(level_name(level)) +
                             ", but node " + std::to_string(member);
    if (disk.destroyed > 0) continue;
    if (of_this_run && held < level) broken(what + " does not hold it: early");
    if (recorded < level) broken(what + " has no record of it: it can be lost");
  }
  if (!of_this_run && decided_[version] < level) {
    broken(name_of(version) + " was never " + std::string(level_name(level)));
  }
  told_[version] = std::max(told_[version], level);
  if (violations_.size() == broken_before) sound_[version] = level;
}

void Checker::destroyed() {
  sound_.clear();
  for (auto& [version, level] : told_) {
    Level recorded = Level::none;
    for (NodeId member = 0; member < world_->nodes(); ++member) {
      const auto& versions = world_->agent(member).disk.versions;
      const auto known = versions.find(version);
      if (known != versions.end()) recorded = std::max(recorded, known->second.recorded);
    }
    level = std::min(level, recorded);
  }
}

void Checker::entered(NodeId node, std::uint64_t barrier, std::uint64_t round) {
  auto& rounds = entered_[barrier];
  rounds.resize(world_->nodes());
  rounds[node] = std::max(rounds[node], round);
}

void Checker::released(NodeId node, std::uint64_t barrier, std::uint64_t round) {
  released_[barrier] = std::max(released_[barrier], round);
  auto& rounds = entered_[barrier];
  rounds.resize(world_->nodes());
  for (NodeId member = 0; member < world_->nodes(); ++member) {
    if (rounds[member] < round) {
      broken("node " + std::to_string(node) + " left round " + std::to_string(round) +
             " of a barrier that node " + std::to_string(member) + " has not entered");
    }
  }
}

std::uint64_t Checker::rounds(std::uint64_t barrier) const {
  const auto found = released_.find(barrier);
  return found == released_.end() ? 0 : found->second;
}

void Checker::published(NodeId node, std::uint64_t incarnation, const std::string& name,
                        const std::string& value) {
  published_.emplace(node, incarnation, name, value);
}

void Checker::delivered(NodeId node, const tree::Fact& fact) {
  if (published_.count({fact.node, fact.incarnation, fact.name, fact.value}) == 0) {
    broken("node " + std::to_string(node) + " got a fact that no node published: " + fact.name);
  }
}

void Checker::stepped(NodeId node) {
  const tree::Tree& tree = *world_->agent(node).tree;
  const tree::Settings& settings = world_->settings();
  const std::size_t connections = tree.connections();
  connections_max_ = std::max(connections_max_, connections);
  if (connections > settings.arity + settings.strangers_max + 2) {
    broken("node " + std::to_string(node) + " has " + std::to_string(connections) + " connections");
  }
}

}  // namespace backstay::sim
