// A set of nodes as ranges of numbers. Subtrees are ranges (shape.h), so that a set of many nodes
// is short: one range for a whole subtree, a few more for each node that is missing or in a foreign
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire/tree_message.h"

namespace backstay::tree {

using wire::tree::Range;

class NodeSet {
 public:
  NodeSet() = default;
  // first .. first+count-1.
  static NodeSet range(NodeId first, std::uint32_t count);
  // From a peer: any order, overlaps and empty ranges are put right; numbers beyond the largest are
  // cut off.
  static NodeSet of(const std::vector<Range>& ranges);

  void add(const NodeSet& other);
  void remove(const NodeSet& other);
  bool contains(const NodeSet& other) const;
  bool contains(NodeId node) const;
  bool empty() const { return spans_.empty(); }
  std::uint64_t count() const;
  // At most `limit` ranges; the rest is left out.
  std::vector<Range> ranges(std::size_t limit) const;
  bool operator==(const NodeSet&) const = default;

  // Nodes begin .. end-1. In order, not empty, with a gap between two.
  struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const Span&) const = default;
  };
  const std::vector<Span>& spans() const { return spans_; }

 private:
  void put_in_order();
  std::vector<Span> spans_;
};

NodeSet intersection(const NodeSet& a, const NodeSet& b);

// One by one, in order.
std::vector<NodeId> numbers(const NodeSet& nodes);

}  // namespace backstay::tree
