// How the agents of a run on several nodes find each other: through the ranks (docs/protocol/peers.md).
#pragma once

#include <string>

#include "base/config.h"
#include "client/connection.h"
#include "client/group.h"

namespace backstay::client {

// Collective. 64 random hexadecimal digits, rank 0's on all ranks; "" with one node. Errors: internal.
Result<std::string> agree_on_secret(const Group& group);

// Collective; nothing with one node. The first rank of each node in turn broadcasts its agent's address and failure
// domain; the first ranks then tell their agents. The same code on all ranks.
// Errors: agent_lost, invalid (an address that is too long), config (protect.domain_file), internal.
Status introduce_agents(const Group& group, Connection& agent, const Config& config);

}  // namespace backstay::client
