#include "agent/group/request_publisher.h"

#include "base/log.h"

namespace backstay::agent {

namespace {
constexpr const char* requests_fact = "requests";
constexpr const char* to_checkpoint = "checkpoint";
constexpr const char* to_stop = "stop";
}  // namespace

void RequestPublisher::request(bool stop) {
  page_.request_checkpoint(stop);
  unreported_ = true;
  stop_ = stop_ || stop;
}

void RequestPublisher::tell(RunMembership* run_membership) {
  if (!unreported_ || state_.nodes == 1 || run_membership == nullptr || !run_membership->started())
    return;
  unreported_ = false;
  if (state_.links.contains(0)) return;
  const Status told = run_membership->publish(requests_fact, stop_ ? to_stop : to_checkpoint);
  if (told.ok()) return;
  spdlog::error("a request to checkpoint does not reach the other nodes job={} error=\"{}\"",
                state_.name, told.error().to_string());
}

// Each fact is heard once, and published for a request only. Of this node: of an earlier life of
// this agent.
void RequestPublisher::learn(const tree::Fact& fact) {
  if (fact.name != requests_fact || fact.node == state_.node) return;
  spdlog::info("asked to checkpoint on node {} job={} what={}", fact.node, state_.name, fact.value);
  page_.request_checkpoint(fact.value == to_stop);
}

void RequestPublisher::clear() { unreported_ = stop_ = false; }

}  // namespace backstay::agent
