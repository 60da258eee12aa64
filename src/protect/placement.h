// Balanced random placement of replicas: paper 002, Algorithm 1, with failure domains. Steps,
// promises and examples: docs/protocol/placement.md. Pure: no I/O, no clock, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace backstay::protect {

struct PlacementFacts {
  std::uint64_t seed = 0;
  std::uint32_t replicas = 1;        // of each segment, beside the node's own copy
  std::vector<std::string> domains;  // label of node 0, 1, ..; empty: a domain of its own
};

// Which nodes hold the copies of each node's segment: one row a node, its own copy first, then
// its replicas in the order of Algorithm 1's columns.
class Placement {
 public:
  Placement(std::uint32_t nodes, std::uint32_t copies);

  std::uint32_t nodes() const { return nodes_; }
  // Copies of each segment: its node's own and the replicas.
  std::uint32_t copies() const { return copies_; }
  std::span<const NodeId> of(NodeId segment) const {
    return std::span(holders_).subspan(std::size_t{segment} * copies_, copies_);
  }
  std::span<NodeId> of(NodeId segment) {
    return std::span(holders_).subspan(std::size_t{segment} * copies_, copies_);
  }
  bool operator==(const Placement&) const = default;

 private:
  std::uint32_t nodes_;
  std::uint32_t copies_;
  std::vector<NodeId> holders_;
};

// Time and memory are linear in nodes * replicas (each of 5 * nodes * replicas swaps looks at a
// row of `replicas`). Errors: few_nodes (replicas >= nodes; the message says what to do).
Result<Placement> place_replicas(const PlacementFacts& facts);

// The rules that were relaxed for want of domains. Empty, with an empty text(), if none was.
struct Relaxation {
  std::vector<NodeId> sharing;  // two or more copies of this node's segment share a domain
  std::vector<NodeId> exposed;  // all copies do: the loss of that domain loses the segment
  std::string largest_domain;   // the label that more than nodes / (replicas + 1) nodes carry
  std::uint32_t largest_domain_nodes = 0;

  // One line: which rule was relaxed, why, and for which nodes.
  std::string text() const;
};

// Precondition: one label for each node that the placement names.
Relaxation relaxation(const Placement& placement, std::span<const std::string> domains);

}  // namespace backstay::protect
