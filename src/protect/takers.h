// Chooses who takes over from lost nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "protect/takeover.h"

namespace backstay::protect {

// A row is a set of nodes of which none may have two parts: the holders of a segment, or a group.
class Takers {
 public:
  explicit Takers(const Survivors& survivors);

  bool is_alive(NodeId node) const { return survivors_.alive[node]; }
  // Counts a part that the node has already.
  void has_one(NodeId node) { ++kept_[node]; }
  // The living node outside `row` with the fewest living nodes of the row in its domain; of those
  // the one that keeps least; of those by a draw from seed, row number and node. Nobody: nullopt.
  // The part is counted.
  std::optional<NodeId> take(std::span<const NodeId> row, std::uint32_t row_number);

 private:
  std::ptrdiff_t living_in_domain_of(NodeId node, std::span<const NodeId> row) const;

  const Survivors& survivors_;
  std::vector<std::uint32_t> domains_;
  std::vector<std::uint64_t> kept_;
};

}  // namespace backstay::protect
