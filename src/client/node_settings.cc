#include "client/node_settings.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/folders.h"

namespace backstay::client {

namespace {

constexpr std::size_t path_bytes_max = 4096;

struct NodeSettings {
  std::array<char, path_bytes_max> socket{};
  std::array<char, path_bytes_max> dir{};
  std::int32_t rank = 0;

  bool same_as(const NodeSettings& other) const {
    return socket == other.socket && dir == other.dir;
  }
};

Status put(std::array<char, path_bytes_max>& to, const std::string& path, const char* key) {
  if (path.size() >= to.size())
    return Error(Code::config, fmt::format("{} is longer than {} bytes", key, to.size() - 1));
  std::memcpy(to.data(), path.data(), path.size());
  return {};
}

Status compare(const NodeSettings& mine, const NodeSettings& first) {
  const bool same_socket = mine.socket == first.socket;
  if (same_socket && mine.dir == first.dir) return {};
  const auto& [key, variable] = same_socket ? std::pair("storage.dir", "BACKSTAY_DIR")
                                            : std::pair("agent.socket", "BACKSTAY_AGENT_SOCKET");
  return Error(
      Code::config,
      fmt::format("the ranks of a node must have the same {0} ({1}): rank {2} has {3}, "
                  "rank {4} has {5}",
                  key, variable, first.rank, same_socket ? first.dir.data() : first.socket.data(),
                  mine.rank, same_socket ? mine.dir.data() : mine.socket.data()));
}

// The lowest of its ranks speaks for each node in turn.
Status compare_on_each_node(const Group& group, const NodeSettings& mine) {
  Status same;
  for (int node = 0; node < group.nodes(); ++node) {
    BACKSTAY_ASSIGN(const int first, group.first_rank_of(node));
    NodeSettings of_first = mine;
    BACKSTAY_TRY(group.broadcast(&of_first, sizeof of_first, first));
    if (group.node() == node) same = compare(mine, of_first);
  }
  return group.agree(same);
}

}  // namespace

Status check_node_settings(const Group& group, const Config& config, const std::string& socket) {
  if (group.ranks() == group.nodes()) return {};  // one rank a node
  NodeSettings mine;
  mine.rank = group.rank();
  Status fits = put(mine.socket, socket, "agent.socket");
  if (fits.ok()) fits = put(mine.dir, normal_path(config.storage.dir), "storage.dir");
  BACKSTAY_TRY(group.agree(fits));
  // The settings are nearly always the same on all ranks of the job; then two exchanges are enough.
  NodeSettings of_rank_0 = mine;
  BACKSTAY_TRY(group.broadcast(&of_rank_0, sizeof of_rank_0));
  BACKSTAY_ASSIGN(const std::int64_t differ, group.maximum(mine.same_as(of_rank_0) ? 0 : 1));
  return differ == 0 ? Status() : compare_on_each_node(group, mine);
}

}  // namespace backstay::client
