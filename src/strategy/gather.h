// Small values of all ranks, on every rank.
#pragma once

#include <type_traits>
#include <vector>

#include "client/group.h"

namespace backstay::strategy {

// Collective. By rank. Errors: those of Group::broadcast().
template <typename Value>
Result<std::vector<Value>> gather(const client::Group& group, const Value& mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> all(static_cast<std::size_t>(group.ranks()), mine);
  for (int rank = 0; rank < group.ranks(); ++rank) {
    BACKSTAY_TRY(group.broadcast(&all[static_cast<std::size_t>(rank)], sizeof(Value), rank));
  }
  return all;
}

}  // namespace backstay::strategy
