// Where this node's agent listens, and starting one.
//
// Whoever starts an agent waits for its words, not for time: on its stderr it says that it listens, or why it cannot,
// and leaves it (launch.h). At each word and at the end the starter tries to connect: where two start one at the
// same time, the kernel decides whose the socket is, the loser's agent ends, and both use the winner's.
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
  double hang_timeout_s = 60;  // 0: for ever
};
AgentAddress agent_address(const Config& config, const std::string& config_file);

// Blocks until an agent listens, this one or another. Errors: agent_lost (it cannot be started, or has ended; the
// message holds its own words), timeout, permission, config (the socket's folder cannot be made).
Status start_agent(const AgentAddress& address, std::uint64_t deadline);

}  // namespace backstay::client
