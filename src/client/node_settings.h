// The settings that the ranks of one node must share: they have one agent, one storage folder and
// one pool.
//
// This is the one place that lists these settings: agent.socket, storage.dir. If they differed,
// ranks would wait in the agent for others that never come. The settings of a whole job come from
// rank 0 (job_settings.h). All other settings of an agent (pool, network, its own) are those of its
// first program; a program that has configured them otherwise is warned (other_settings.h).
#pragma once

#include <string>

#include "base/config.h"
#include "client/group.h"

namespace backstay::client {

// Collective. `socket`: as an absolute path. Errors: config (names the setting, both values and
// both ranks).
Status check_node_settings(const Group& group, const Config& config, const std::string& socket);

}  // namespace backstay::client
