// Prints the table of docs/protocol/cut.md, "Growth": cut_growth [AGENTS ...]
#include <cstdlib>
#include <iostream>
#include <vector>

#include "carried_cut/growth.h"

int main(int argc, char** argv) {
  using namespace backstay::agent::test;  // NOLINT
  std::vector<std::uint32_t> sizes;
  for (int i = 1; i < argc; ++i)
    sizes.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  if (sizes.empty()) sizes = {16, 256, 2047, 16384, 100000};
  std::cout << "| agents | rounds of messages | messages an agent: mean, max | "
               "bytes an agent: mean, max | node 0: messages, bytes |\n|---|---|---|---|---|\n";
  for (const std::uint32_t nodes : sizes) {
    const Cost cost = cost_of_a_cut(nodes);
    if (!cost.saved) {
      std::cerr << "the cut of " << nodes << " ranks is not saved\n";
      return 1;
    }
    const double tenths = static_cast<double>(static_cast<std::uint64_t>(cost.mean_messages * 10));
    std::cout << "| " << nodes << " | " << cost.turns << " | " << tenths / 10 << ", "
              << cost.most.messages << " | " << static_cast<std::uint64_t>(cost.mean_bytes) << ", "
              << cost.most.bytes << " | " << cost.of_node_0.messages << ", " << cost.of_node_0.bytes
              << " |\n";
  }
  return 0;
}
