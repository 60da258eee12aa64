// Taking one version on this rank: from begin to the agent's `captured` (docs/protocol/agent.md).
//
// 1. begin; the agent grants buffers as they are free.
// 2. Each buffer is filled with the next piece of the object, copied and checksummed in one pass,
//    and handed over in object order, a few at once.
// 3. end, after the last piece; `captured` has the outcome for all ranks.
// The user's data is not touched after end was sent.
#pragma once

#include "base/checksum.h"
#include "base/result.h"
#include "client/connection.h"
#include "client/snapshot.h"

namespace backstay::client {

// Blocks until the version is captured or given up. Errors: agent_lost, rank_lost, invalid (a
// routed file became shorter; the connection is then over), io, and the agent's reason if it gives
// the version up. `warning`: the agent's words on versions that are not safe; "": nothing new.
Status capture(Connection& agent, Snapshot& snapshot, VersionNumber version, std::string& warning);

}  // namespace backstay::client
