// The network of the agent's jobs on several nodes, as configured.
#pragma once

#include <string>

#include "agent/disk/links.h"
#include "base/config.h"

namespace backstay::bin {

// Listens when it returns. Errors: invalid (the secret), config (no such device), port_in_use,
// permission, io.
Result<agent::Network> make_network(const Config& config, const agent::MemberId& self,
                                    const std::string& secret);

}  // namespace backstay::bin
