// Making sure that this node's agent runs, for tools.
#pragma once

#include <string>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

struct RunningAgent {
  bool fresh = false;  // false: it ran already
  int pid = 0;
  std::string socket;
};

// Blocks until an agent answers, at most twice agent.start_timeout_s. `config_file` is passed on to
// a fresh one.
// Errors: agent_lost (none can be started, or the one that listens hangs; the message says what to
// do), timeout.
Result<RunningAgent> ensure_agent(const Config& config, const std::string& config_file);

}  // namespace backstay::bin
