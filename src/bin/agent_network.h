// The network of the agent's jobs on several nodes, as configured.
#pragma once

#include <memory>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "net/transport.h"

namespace backstay::bin {

// Listens when it returns. `identity`: of this agent, as its peers shall see it. Errors: invalid
// (the secret), config (no such device), port_in_use, permission, io.
Result<std::unique_ptr<net::Transport>> listen(const Config& config, const std::string& identity,
                                               const std::string& secret);

}  // namespace backstay::bin
