#include "client/group.h"

#include <string>

namespace backstay::client {

namespace {

constexpr std::int64_t own_cause = 1000;

// Orders outcomes; 0 is success.
std::int64_t weight(const Status& status) {
  if (status.ok()) return 0;
  switch (status.error().code()) {
    case Code::rank_lost: return 1;
    case Code::agent_lost: return 2;
    default: return own_cause + static_cast<std::int64_t>(status.error().code());
  }
}

Code code_of(std::int64_t weight) {
  if (weight == 1) return Code::rank_lost;
  if (weight == 2) return Code::agent_lost;
  return static_cast<Code>(weight - own_cause);
}

}  // namespace

Group::Group() : group_{} { group_.ranks = group_.local_ranks = group_.nodes = 1; }

Status Group::broadcast(void* data, std::size_t bytes) const {
  if (group_.ranks == 1) return {};
  if (const int rc = group_.broadcast(group_.context, data, bytes, 0); rc != 0) {
    return Error(Code::internal, "the launcher's broadcast failed with " + std::to_string(rc));
  }
  return {};
}

Result<std::int64_t> Group::minimum(std::int64_t value) const {
  if (group_.ranks == 1) return value;
  if (const int rc = group_.minimum(group_.context, &value); rc != 0) {
    return Error(Code::internal, "the launcher's minimum failed with " + std::to_string(rc));
  }
  return value;
}

Result<std::int64_t> Group::maximum(std::int64_t value) const {
  BACKSTAY_ASSIGN(const std::int64_t least, minimum(-value));
  return -least;
}

Status Group::agree(const Status& mine) const {
  BACKSTAY_ASSIGN(const std::int64_t gravest, maximum(weight(mine)));
  if (gravest == 0 || gravest == weight(mine)) return mine;
  const Code code = code_of(gravest);
  std::string message =
      "another rank failed (" + std::string(code_name(code)) + "); its own message says why";
  if (!mine.ok()) message += "; on this rank: " + mine.error().message();
  return Error(code, std::move(message));
}

void Group::release() {
  if (group_.release != nullptr) group_.release(group_.context);
  group_.release = nullptr;
}

Status check_group(const backstay_group& group) {
  const auto outside = [](int value, int count) { return value < 0 || value >= count; };
  if (group.ranks < 1 || outside(group.rank, group.ranks)) {
    return Error(Code::invalid, "group: rank must lie between 0 and ranks - 1");
  }
  if (group.local_ranks < 1 || group.local_ranks > group.ranks ||
      outside(group.local_rank, group.local_ranks)) {
    return Error(Code::invalid, "group: local_rank must lie between 0 and local_ranks - 1");
  }
  if (group.nodes < 1 || outside(group.node, group.nodes)) {
    return Error(Code::invalid, "group: node must lie between 0 and nodes - 1");
  }
  if (group.ranks > 1 && (group.broadcast == nullptr || group.minimum == nullptr)) {
    return Error(Code::invalid, "group: broadcast and minimum must not be NULL");
  }
  if (group.nodes > 1) {
    return Error(Code::unsupported,
                 "jobs over several nodes come with a later release: start all "
                 "ranks on one node");
  }
  if (group.local_ranks != group.ranks) {
    return Error(Code::invalid, "group: with one node local_ranks must equal ranks");
  }
  return {};
}

}  // namespace backstay::client
