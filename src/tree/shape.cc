#include "tree/shape.h"

#include <algorithm>

#include "base/check.h"

namespace backstay::tree {

namespace {

// How many nodes the subtree of the `index`th child has, of `rest` that are dealt out.
std::uint32_t part(std::uint32_t rest, std::uint32_t arity, std::uint32_t index) {
  return rest / arity + (index < rest % arity ? 1 : 0);
}

}  // namespace

Place place_of(NodeId node, std::uint32_t nodes, std::uint32_t arity) {
  BACKSTAY_CHECK(arity >= 2 && nodes > 0);
  if (node >= nodes) {
    const NodeId home = node % nodes;
    Place spare;
    spare.ancestors = place_of(home, nodes, arity).ancestors;
    spare.ancestors.push_back(home);
    return spare;
  }
  Place place;
  NodeId top = 0;
  std::uint32_t size = nodes;
  while (top != node) {
    place.ancestors.push_back(top);
    NodeId child = top + 1;
    std::uint32_t index = 0;
    for (; node - child >= part(size - 1, arity, index); ++index) {
      child += part(size - 1, arity, index);
    }
    size = part(size - 1, arity, index);
    top = child;
  }
  place.subtree = size;
  NodeId child = top + 1;
  for (std::uint32_t index = 0; index < std::min(arity, size - 1); ++index) {
    place.children.push_back(child);
    child += part(size - 1, arity, index);
  }
  return place;
}

}  // namespace backstay::tree
