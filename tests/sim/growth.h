// What a run of n nodes costs without faults, in rounds (the time of one message) and messages per
// agent, and after the death of the root and of an inner node. No time of any machine is in it.
#pragma once

#include <cstdint>
#include <string>

namespace backstay::sim {

struct Cost {
  std::uint32_t rounds = 0;
  double messages_mean = 0;  // sent and received, per agent
  std::uint64_t messages_max = 0;
};

struct Growth {
  std::uint32_t nodes = 0;
  std::uint32_t arity = 0;
  std::uint32_t depth = 0;  // links from the root to the farthest node
  double connections_mean = 0;
  std::size_t connections_max = 0;
  std::size_t bytes_per_agent = 0;  // allocated memory; 0 if it is not known
  Cost join;
  Cost tick;  // one heartbeat of all
  Cost barrier;
  Cost commit;  // of one level; writing to disks takes no time
  Cost fact;
  // After the death: ticks from there until all others are one tree again.
  std::uint32_t root_dies_ticks = 0;
  std::uint32_t inner_dies_ticks = 0;
  std::size_t repair_connections_max = 0;
  std::uint64_t repair_messages_max = 0;  // a tick, of the agent that had most
};

Growth grow(std::uint32_t nodes, std::uint32_t arity);

std::string json(const Growth& growth);
// The table of docs/protocol/tree.md; the last column depends on the allocator, all others do not.
std::string table_head();
std::string table_row(const Growth& growth);

}  // namespace backstay::sim
