// The address of this node's agent, and starting one.
//
// The starter waits for the agent's words, not for time: the agent says on its stderr that it
// listens, or why it cannot, and then closes it (launch.h). The starter tries to connect after each
// word and at the end. If two programs start an agent at the same time, the kernel decides which
// agent gets the socket; the other agent ends, and both programs use the first.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"
#include "base/result.h"

namespace backstay::client {

struct AgentAddress {
  std::string socket_path;
  std::string program;      // agent.program, may be ""
  std::string config_file;  // absolute, may be ""
  double start_timeout_s = 30;
  double hang_timeout_s = 60;  // 0: no limit
};
AgentAddress agent_address(const Config& config, const std::string& config_file);

// Blocks until an agent listens, this one or another. Errors: agent_lost (it cannot be started, or
// has ended; the message holds its own words), timeout, permission, config (the socket's folder
// cannot be made).
Status start_agent(const AgentAddress& address, std::uint64_t deadline);

}  // namespace backstay::client
