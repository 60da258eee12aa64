// Who an agent is in a run.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace backstay::agent {

// Its identity in the handshake of the network (docs/protocol/peers.md).
struct MemberId {
  RunId run = 0;
  NodeId node = 0;
  std::uint64_t incarnation = 0;

  std::string text() const;
  // Errors: invalid.
  static Result<MemberId> parse(const std::string& text);
};

}  // namespace backstay::agent
