#include "agent/group/blocker_publisher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/version/why_not.h"
#include "base/log.h"
#include "base/machine.h"

namespace backstay::agent {

std::vector<Blocker> BlockerPublisher::own(std::vector<Blocker> all) const {
  std::ranges::move(blockers_here(state_), std::back_inserter(all));
  for (const Blocker& before : told_) {  // dropped for a newer one: it does not come any more
    if (before.level == Level::local && state_.is_gone(before.version)) all.push_back(before);
  }
  return newest_of(std::move(all));
}

void BlockerPublisher::tell(RunMembership* run_membership, std::vector<Blocker> blockers) {
  if (state_.nodes == 1 || run_membership == nullptr || !run_membership->started()) return;
  std::vector<Blocker> now = own(std::move(blockers));
  if (now == told_) return;
  told_ = now;
  NodeBlockers all{host_name(), std::move(now)};
  const Status published = run_membership->publish(blockers_fact, encode(all));
  if (!published.ok()) {
    spdlog::warn("the other nodes are not told why versions stay behind job={} error=\"{}\"",
                 state_.name, published.error().to_string());
  }
  state_.versions.blocked(state_.node, std::move(all));
}

void BlockerPublisher::learn(const tree::Fact& fact) {
  if (fact.name != blockers_fact) return;
  if (fact.node == state_.node) {  // of an earlier life of this agent: the next tell() renews it
    told_.emplace_back();
    return;
  }
  auto blockers = decode_blockers(fact.value);
  if (blockers.ok()) return state_.versions.blocked(fact.node, std::move(*blockers));
  spdlog::warn("what node {} lacks cannot be read job={}", fact.node, state_.name);
}

}  // namespace backstay::agent
