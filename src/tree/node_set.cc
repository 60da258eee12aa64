#include "tree/node_set.h"

#include <algorithm>

namespace backstay::tree {

namespace {
constexpr std::uint64_t nodes_end = UINT64_C(1) << 32;
}

NodeSet NodeSet::range(NodeId first, std::uint32_t count) { return of({{first, count}}); }

NodeSet NodeSet::of(const std::vector<Range>& ranges) {
  NodeSet set;
  for (const Range& range : ranges) {
    const std::uint64_t end = std::min(std::uint64_t{range.first} + range.count, nodes_end);
    if (range.count > 0) set.spans_.push_back({range.first, end});
  }
  set.put_in_order();
  return set;
}

void NodeSet::put_in_order() {
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> joined;
  for (const Span& span : spans_) {
    if (!joined.empty() && span.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
  }
  spans_ = std::move(joined);
}

void NodeSet::add(const NodeSet& other) {
  if (contains(other)) return;
  spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
  put_in_order();
}

void NodeSet::remove(const NodeSet& other) {
  std::vector<Span> left;
  auto cut = other.spans_.begin();
  for (Span span : spans_) {
    while (cut != other.spans_.end() && cut->end <= span.begin) ++cut;
    for (auto at = cut; at != other.spans_.end() && at->begin < span.end; ++at) {
      if (at->begin > span.begin) left.push_back({span.begin, at->begin});
      span.begin = std::max(span.begin, at->end);
    }
    if (span.begin < span.end) left.push_back(span);
  }
  spans_ = std::move(left);
}

bool NodeSet::contains(const NodeSet& other) const {
  auto mine = spans_.begin();
  for (const Span& span : other.spans_) {
    while (mine != spans_.end() && mine->end < span.end) ++mine;
    if (mine == spans_.end() || mine->begin > span.begin) return false;
  }
  return true;
}

bool NodeSet::contains(NodeId node) const { return contains(range(node, 1)); }

std::uint64_t NodeSet::count() const {
  std::uint64_t nodes = 0;
  for (const Span& span : spans_) nodes += span.end - span.begin;
  return nodes;
}

std::vector<Range> NodeSet::ranges(std::size_t limit) const {
  std::vector<Range> list;
  for (const Span& span : spans_) {
    if (list.size() == limit) break;
    // A range of all 2^32 numbers would not fit its count; its last number is given up.
    const std::uint64_t count = std::min<std::uint64_t>(span.end - span.begin, UINT32_MAX);
    list.push_back({static_cast<NodeId>(span.begin), static_cast<std::uint32_t>(count)});
  }
  return list;
}

NodeSet intersection(const NodeSet& a, const NodeSet& b) {
  NodeSet outside = a;
  outside.remove(b);
  NodeSet both = a;
  both.remove(outside);
  return both;
}

std::vector<NodeId> numbers(const NodeSet& nodes) {
  std::vector<NodeId> all;
  for (const NodeSet::Span& span : nodes.spans()) {
    for (std::uint64_t node = span.begin; node < span.end; ++node) {
      all.push_back(static_cast<NodeId>(node));
    }
  }
  return all;
}

}  // namespace backstay::tree
