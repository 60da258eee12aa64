// Getting a connection to the node's agent, and starting an agent if none runs.
//
// Protocol, the same at start and after an agent was lost; every step ends with all ranks agreeing:
// 1. Rank 0 of the node connects. If no agent listens, it starts one (start.h) and connects again.
// 2. The other ranks connect.
// 3. All take the largest version number that any of them received.
// Not promised: that the agent is still there a moment later. Each call notices by itself.
#pragma once

#include <memory>

#include "base/result.h"
#include "client/connection.h"
#include "client/group.h"
#include "client/start.h"
#include "wire/message.h"

namespace backstay::client {

// One rank: connects, or starts an agent and connects. `was_silent`: the last try found an agent
// that did not answer, so it gets a moment now and not start_timeout_s. `died`: after an error,
// whether an agent ended meanwhile, so that another one may succeed; false if it refused, or if
// there is no program to start. Errors: agent_lost, and the agent's refusals.
Result<std::unique_ptr<Connection>> connect_or_start(const AgentAddress& address,
                                                     const wire::Message& hello, bool was_silent,
                                                     bool& died);

// Collective. `died` is this rank's. Errors: the same code on all ranks; then no rank keeps a
// connection.
Result<std::unique_ptr<Connection>> attach(const Group& group, const AgentAddress& address,
                                           const wire::Message& hello, bool was_silent, bool& died);

}  // namespace backstay::client
