// Taking one version on this rank: from begin to the agent's `captured` (docs/protocol/agent.md).
//
// 1. begin; the agent grants buffers as they are free.
// 2. Each buffer is filled with the next piece of the object and handed over in object order, a few
//    at once.
// 3. end, after the last piece; `captured` has the outcome for all ranks.
// The user's data is not touched after end was sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "client/connection.h"

namespace backstay::client {

// The object that one version takes of this rank, front to back.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  virtual std::uint64_t object_bytes() const = 0;
  // So much of its front went to the agent before, as streams, or is kept.
  virtual std::uint64_t handed_over() const { return 0; }
  // What of that front is kept of an older version: its chunks, in order (docs/protocol/agent.md).
  // There may be a base and no chunks of it; base 0: there is none.
  struct Kept {
    VersionNumber base = 0;
    std::vector<wire::KeptChunk> chunks;
  };
  virtual Kept kept() const { return {}; }
  // Puts the next to.size() bytes of the object into `to`, which lies in the pool of the
  // connection, and returns their checksum. The caller asks for all of it.
  virtual Result<std::uint64_t> read_next(std::span<std::byte> to) = 0;
  // All bytes are in the pool: the object may change from now on.
  virtual void complete() {}
  // What else its owner has to see to while the version is taken: called after each buffer, and
  // while the agent is waited for. Returns in how many milliseconds again; -1: after the next one.
  virtual int attend() { return -1; }
  // After complete(): how long the program stood still for the object, where that is known.
  struct Stop {
    std::uint64_t ns = 0;
    bool snapshot = false;  // the object was read out of a copy of the process
  };
  virtual std::optional<Stop> stop() const { return std::nullopt; }
};

// Blocks until the version is captured or given up. Errors: agent_lost, rank_lost, invalid (a
// routed file became shorter), io, and the agent's reason if it gives the version up. `warning`:
// the agent's words on versions that are not safe; "": nothing new.
Status capture(Connection& agent, ObjectSource& source, VersionNumber version,
               std::string& warning);

}  // namespace backstay::client
