// The collector as commands see it: where it is, starting it, and waiting for files.
#pragma once

#include <functional>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "client/start.h"

namespace backstay::files {

// Of the job `job` beside the agent with this address.
std::string collector_socket(const client::AgentAddress& agent, const std::string& job);

// Starts a collector where none listens, and says that this process, which becomes a program, may
// ask it later. Errors: agent_lost (it cannot be started; its own words), timeout.
Status ensure_collector(const std::string& socket, const std::string& program);

// A collector listens there, or one has left files that are pending.
bool may_have_files(const std::string& socket);

// Blocks until all files that are pending are at their places. `tell`: lines for people. ok where
// no collector listens and none has left anything. Errors: io (files are not at their places, they
// were told).
Status settle_all(const std::string& socket, const std::string& program,
                  const std::function<void(const std::string&)>& tell);

}  // namespace backstay::files
