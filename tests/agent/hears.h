// A room hears a message of another agent, as the table in agent/job gives it one; false: none of
// its handlers takes it.
#pragma once

#include "base/ids.h"
#include "wire/peer_message.h"

namespace backstay::agent::testing {

template <typename Room>
bool hears(Room& room, NodeId from, const wire::peer::Message& message) {
  const auto give = [&](const auto& one) {
    if constexpr (requires { room.on(from, one); }) {
      room.on(from, one);
      return true;
    } else if constexpr (requires { room.message(from, one); }) {
      room.message(from, one);
      return true;
    }
    return false;
  };
  return std::visit(give, message);
}

}  // namespace backstay::agent::testing
