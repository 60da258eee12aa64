#include "bin/run/keeper_of.h"

#include <algorithm>

namespace backstay::bin {

std::string keeper_of(const std::string& owner, const std::vector<std::string>& hosts,
                      std::size_t tried) {
  const auto at = std::ranges::find(hosts, owner);
  std::vector<std::string> others(at == hosts.end() ? at : at + 1, hosts.end());
  others.insert(others.end(), hosts.begin(), at);
  std::erase(others, owner);
  return others.empty() ? "" : others[tried % others.size()];
}

std::uint64_t pause_before_next_ns(unsigned in_vain) {
  constexpr std::uint64_t first_ns = 2'000'000'000;
  constexpr unsigned doubled_max = 9;
  return first_ns << std::min(std::max(in_vain, 1U) - 1, doubled_max);
}

}  // namespace backstay::bin
