// Getting a connection to the node's agent, starting one where none runs.
//
// Protocol, the same at start and after an agent was lost; every step ends with all ranks agreeing:
// 1. Rank 0 of the node connects. Where nobody listens it starts an agent and tries again until
//    it answers, has ended, or agent.start_timeout_s is over. If another job's rank 0 does the same at the
//    same time, the socket's owner is decided by the kernel; the loser's agent ends and both use the winner.
// 2. The other ranks connect.
// 3. All take the largest version number that any of them was told.
// Not promised: that the agent is still there a moment later. Each call notices by itself.
#pragma once

#include <memory>

#include "base/config.h"
#include "base/result.h"
#include "client/connection.h"
#include "client/group.h"
#include "wire/message.h"

namespace backstay::client {

struct AgentAddress {
  std::string socket_path;
  std::string program;      // agent.program, may be ""
  std::string config_file;  // absolute, may be ""
  double start_timeout_s = 30;
  double hang_timeout_s = 60;  // 0: for ever
};
AgentAddress agent_address(const Config& config, const std::string& config_file);

// One rank: connects, or starts an agent and connects. Errors: agent_lost, and the agent's refusals.
Result<std::unique_ptr<Connection>> connect_or_start(const AgentAddress& address,
                                                     const wire::Hello& hello);

// Collective. Errors: the same code on all ranks; then no rank keeps a connection.
Result<std::unique_ptr<Connection>> attach(const Group& group, const AgentAddress& address,
                                           const wire::Hello& hello);

}  // namespace backstay::client
