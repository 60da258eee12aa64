// What one cut costs each agent: messages and bytes that it sends and receives over the network,
// counted and not timed.
//
// One rank a node, arity 16. Each rank has a communicator of all ranks and one of the 64 around it;
// half of the ranks are one call ahead in each, so there are two rounds.
#pragma once

#include <cstdint>

namespace backstay::agent::test {

struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

struct Cost {
  bool saved = false;
  std::uint64_t turns = 0;  // rounds of messages
  double mean_messages = 0, mean_bytes = 0;
  Traffic most;  // of an agent
  Traffic of_node_0;
};

Cost cost_of_a_cut(std::uint32_t nodes);

}  // namespace backstay::agent::test
