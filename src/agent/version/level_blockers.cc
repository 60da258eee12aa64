#include "agent/version/level_blockers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace backstay::agent {

void LevelBlockers::blocked(NodeId node, NodeBlockers all) {
  NodeBlockers& known = nodes_[node];
  const auto note = [this](const std::vector<Blocker>& some, const std::vector<Blocker>& others) {
    for (const Blocker& one : some) {
      if (std::ranges::find(others, one) == others.end()) changed_.versions.insert(one.version);
    }
  };
  note(known.blockers, all.blockers);
  note(all.blockers, known.blockers);
  known = std::move(all);
}

void LevelBlockers::cut_off(NodeId node, std::optional<Error> why) {
  if (!why) {
    changed_.all |= cut_off_.erase(node) != 0;
    return;
  }
  const auto known = cut_off_.find(node);
  if (known != cut_off_.end() && known->second.message() == why->message()) return;
  cut_off_.insert_or_assign(node, std::move(*why));
  changed_.all = true;
}

void LevelBlockers::lost(const tree::NodeSet& nodes, std::uint64_t now_ns) {
  if (lost_ == nodes) return;
  lost_ = nodes;
  lost_changed_ns_ = now_ns;
  changed_.all = true;
}

void LevelBlockers::not_written(VersionFailed failed) {
  BACKSTAY_CHECK(failed.version != 0);
  if (!not_written_) ++write_outages_;
  not_written_ = std::move(failed);
}

void LevelBlockers::begin_copies() {
  not_copied_.reset();
  shared_unreadable_.reset();
}

std::optional<LevelBlockers::OfNode> LevelBlockers::nearest(VersionNumber version, Level has,
                                                            Level wanted) const {
  std::optional<OfNode> lowest;
  for (const auto& [node, all] : nodes_) {
    for (const Blocker& blocker : all.blockers) {
      if (blocker.version != version || blocker.level <= has || blocker.level > wanted) continue;
      if (lowest && lowest->blocker.level <= blocker.level) continue;
      lowest = OfNode{node, all.host, blocker};
    }
  }
  return lowest;
}

const Blocker* LevelBlockers::newest(NodeId node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() || known->second.blockers.empty() ? nullptr
                                                                 : &known->second.blockers.front();
}

void LevelBlockers::forget_blockers() {
  nodes_.clear();
  cut_off_.clear();
  lost_ = {};
  lost_changed_ns_ = 0;
  not_written_.reset();
}

LevelBlockers::Changed LevelBlockers::take_changed() { return std::exchange(changed_, {}); }

}  // namespace backstay::agent
