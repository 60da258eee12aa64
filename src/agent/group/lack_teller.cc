#include "agent/group/lack_teller.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/machine.h"

namespace backstay::agent {

std::vector<Lack> LackTeller::own(std::vector<Lack> all) const {
  for (const auto& [number, version] : state_.memory) {
    if (!version.failed || version.info.run != state_.run) continue;
    all.push_back({number, Level::local, version.failed->code(), version.failed->message()});
  }
  for (const Lack& before : told_) {  // dropped for a newer one: it does not come any more
    if (before.level == Level::local && state_.is_gone(before.version)) all.push_back(before);
  }
  return newest_of(std::move(all));
}

void LackTeller::tell(Fleet* fleet, std::vector<Lack> lacks) {
  if (state_.nodes == 1 || fleet == nullptr || !fleet->started()) return;
  std::vector<Lack> now = own(std::move(lacks));
  if (now == told_) return;
  told_ = now;
  NodeLacks all{host_name(), std::move(now)};
  const Status published = fleet->publish(lacks_fact, encode(all));
  if (!published.ok()) {
    spdlog::warn("the other nodes are not told why versions stay behind job={} error=\"{}\"",
                 state_.name, published.error().to_string());
  }
  learn(state_.node, std::move(all));
}

void LackTeller::learn(const tree::Fact& fact) {
  if (fact.name != lacks_fact) return;
  if (fact.node == state_.node) {  // of an earlier life of this agent: the next tell() renews it
    told_.emplace_back();
    return;
  }
  auto lacks = decode_lacks(fact.value);
  if (lacks.ok()) return learn(fact.node, std::move(*lacks));
  spdlog::warn("what node {} lacks cannot be read job={}", fact.node, state_.name);
}

void LackTeller::learn(NodeId node, NodeLacks lacks) {
  for (const VersionNumber version : state_.lacks.learn(node, std::move(lacks))) {
    state_.versions.changed(version);
  }
}

void LackTeller::clear() {
  told_.clear();
  state_.lacks.clear();
}

}  // namespace backstay::agent
