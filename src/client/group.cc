#include "client/group.h"

#include <array>
#include <string>

#include "base/machine.h"

namespace backstay::client {

namespace {

constexpr std::int64_t own_cause = 1000;
constexpr std::size_t words_bytes_max = 1024;  // of an error, for the other ranks

// Orders outcomes; 0 is success, and the greatest is reported. Errors that can be mended (no_space,
// permission) are greater than lost data.
std::int64_t weight(const Status& status) {
  if (status.ok()) return 0;
  switch (status.error().code()) {
    case Code::rank_lost: return 1;
    case Code::agent_lost: return 2;
    case Code::lost: return own_cause + 2 * static_cast<std::int64_t>(Code::io) + 1;
    default: return own_cause + 2 * static_cast<std::int64_t>(status.error().code());
  }
}

Code code_of(std::int64_t weight) {
  if (weight == 1) return Code::rank_lost;
  if (weight == 2) return Code::agent_lost;
  const std::int64_t twice = weight - own_cause;
  return twice % 2 != 0 ? Code::lost : static_cast<Code>(twice / 2);
}

// Names the host too on several nodes, where a rank's number does not say where to look.
std::string as_told(const Group& group, const Error& error) {
  const std::string where = group.nodes() == 1 ? "" : " (" + host_name() + ")";
  return "rank " + std::to_string(group.rank()) + where + ": " + error.message();
}

}  // namespace

Group::Group() : group_{} { group_.ranks = group_.local_ranks = group_.nodes = 1; }

Status Group::broadcast(void* data, std::size_t bytes, int root) const {
  if (group_.ranks == 1) return {};
  if (const int rc = group_.broadcast(group_.context, data, bytes, root); rc != 0) {
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

Result<int> Group::first_rank_of(int node) const {
  BACKSTAY_ASSIGN(const std::int64_t first, minimum(node == this->node() ? rank() : ranks()));
  if (first < ranks()) return static_cast<int>(first);
  return Error(Code::invalid, "group: no rank is on node " + std::to_string(node));
}

Status Group::agree(const Status& mine) const {
  BACKSTAY_ASSIGN(const std::int64_t gravest, maximum(weight(mine)));
  if (gravest == 0) return mine;
  const bool own = gravest == weight(mine);
  BACKSTAY_ASSIGN(const std::int64_t speaker, minimum(own ? rank() : ranks()));
  std::array<char, words_bytes_max> words{};
  if (speaker == rank()) {
    const std::string text = as_told(*this, mine.error());
    text.copy(words.data(), words.size() - 1);
  }
  BACKSTAY_TRY(broadcast(words.data(), words.size(), static_cast<int>(speaker)));
  if (own) return mine;
  std::string message = words.data();
  if (!mine.ok()) message += "; on this rank: " + mine.error().message();
  return Error(code_of(gravest), std::move(message));
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
    return Error(Code::null, "group: broadcast and minimum must not be NULL");
  }
  if ((group.nodes == 1) != (group.local_ranks == group.ranks)) {
    return Error(Code::invalid, "group: local_ranks must equal ranks with one node, and only then");
  }
  return {};
}

}  // namespace backstay::client
