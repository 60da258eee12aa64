// How the agents of a run on several nodes find each other: through the ranks
// (docs/protocol/peers.md).
#pragma once

#include <map>
#include <string>

#include "base/config.h"
#include "client/connection.h"
#include "client/group.h"

namespace backstay::client {

// Collective. 64 random hexadecimal digits, rank 0's on all ranks; "" with one node. Errors:
// internal.
Result<std::string> agree_on_secret(const Group& group);

// Checks by their addresses whether the hosts of a run can reach each other's agents.
class Reach {
 public:
  // Adds the next node. Errors: config (a loopback address with several hosts; two hosts with one
  // address).
  Status add(const std::string& host, const std::string& address);

 private:
  std::string first_host_;
  bool several_hosts_ = false;
  std::string unreachable_;                     // an agent that only its own host reaches; "": none
  std::map<std::string, std::string> host_at_;  // by address without port
};

// Collective; nothing with one node. The first rank of each node in turn broadcasts its agent's
// address and failure domain; the first ranks then pass them to their agents. The same code on all
// ranks.
// Errors: agent_lost, invalid (an address that is too long), config (protect.domain_file,
// network.device), internal.
Status introduce_agents(const Group& group, Connection& agent, const Config& config);

}  // namespace backstay::client
