// Small values of all ranks, on rank 0.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "client/group.h"
#include "strategy/transport.h"

namespace backstay::strategy {

// Collective. Rank 0 gets the values of all ranks, by rank; others get their own value only.
// Without a transport the values travel by broadcasts. Errors: those of Group::broadcast() and
// Transport.
template <typename Value>
Result<std::vector<Value>> gather(const client::Group& group, const Transport* transport,
                                  const Value& mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> all(static_cast<std::size_t>(group.ranks()), mine);
  if (transport != nullptr && group.rank() != 0) {
    BACKSTAY_TRY(transport->send(0, std::as_bytes(std::span(&mine, 1))));
    BACKSTAY_TRY(transport->wait());
    return all;
  }
  for (int rank = 1; rank < group.ranks(); ++rank) {
    Value& theirs = all[static_cast<std::size_t>(rank)];
    BACKSTAY_TRY(transport == nullptr
                     ? group.broadcast(&theirs, sizeof theirs, rank)
                     : transport->receive(rank, std::as_writable_bytes(std::span(&theirs, 1))));
  }
  return all;
}

}  // namespace backstay::strategy
