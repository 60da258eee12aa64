#include "client/fewer_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace backstay::client {

namespace {

// What lies before and behind the comma of "k,m"; zeros where it is something else. protect::parse_parity checks it, in the
// agent, which refuses what is wrong; the client may not include protect (docs/architecture.md).
std::pair<std::uint32_t, std::uint32_t> shape_of(std::string_view parity) {
  std::pair<std::uint32_t, std::uint32_t> shape{};
  const std::size_t comma = parity.find(',');
  if (comma == std::string_view::npos) return shape;
  const char* const text = parity.data();
  std::from_chars(text, text + comma, shape.first);
  std::from_chars(text + comma + 1, text + parity.size(), shape.second);
  return shape;
}

}  // namespace

std::string keep_what_nodes_allow(Config::Protect& protect, int nodes, const char* attempt) {
  if (attempt == nullptr || std::string_view(attempt) == "0") return "";
  const auto [data, parity] = shape_of(protect.parity);
  const bool by_parity = !protect.parity.empty();
  const std::uint32_t losses = by_parity ? parity : protect.replicas;
  const std::uint32_t needed = by_parity ? data + parity : protect.replicas + 1;
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
