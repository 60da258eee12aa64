#include "client/fewer_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/parity_shape.h"

namespace backstay::client {

std::string keep_what_nodes_allow(Config::Protect& protect, int nodes, const char* attempt) {
  if (attempt == nullptr || std::string_view(attempt) == "0") return "";
  const bool by_parity = !protect.parity.empty();
  const auto shape = parse_parity(protect.parity);
  if (by_parity && !shape.ok()) return "";  // the agent refuses it
  const std::uint32_t losses = by_parity ? shape->parity : protect.replicas;
  const std::uint32_t needed = by_parity ? shape->members() : protect.replicas + 1;
  const auto left = static_cast<std::uint32_t>(nodes);
  const bool alone_anyway = left == 1 && !by_parity;  // one node is asked for no replicas
  if (losses == 0 || needed <= left || alone_anyway) return "";
  const std::string wanted = by_parity ? fmt::format("protect.parity = \"{}\"", protect.parity)
                                       : fmt::format("protect.replicas = {}", protect.replicas);
  protect.parity.clear();
  protect.replicas = std::max(1U, std::min(losses, left - 1));  // a node alone keeps none of them
  const std::string instead = left == 1 ? "none; the loss of its disk loses all"
                                        : fmt::format("protect.replicas = {}", protect.replicas);
  return fmt::format("{} node{} left, too few for {}: the job goes on with {}", left,
                     left == 1 ? " is" : "s are", wanted, instead);
}

}  // namespace backstay::client
