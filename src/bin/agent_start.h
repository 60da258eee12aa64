// Starts this node's agent as a daemon: a session of its own, no descriptor of ours.
#pragma once

#include <string>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

// The agent's program: configured, else beside this one, else in PATH. "" where there is none.
std::string agent_program(const Config& config);

struct AgentStarted {
  bool fresh = false;  // false: one ran already
  int pid = 0;         // of a fresh one
};

// Makes sure that an agent answers. Blocks until it does, at most agent.start_timeout_s.
// `config_file` is handed on to it. Errors: not_found (no program), agent_lost (it ended at once;
// the message holds what it said), timeout.
Result<AgentStarted> ensure_agent(const Config& config, const std::string& config_file);

}  // namespace backstay::bin
