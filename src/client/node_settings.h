// What the ranks of one node must have in common: they share one agent, one storage folder and one pool.
//
// This is the one place that lists these settings: agent.socket, storage.dir. Where they differ, ranks would wait in the
// agent for others that never come. What all ranks of a job share comes from rank 0 (job_settings.h); everything else that an
// agent reads (pool, network, its own) counts as its first program has it, and a program that has configured it otherwise is
// warned (other_settings.h).
#pragma once

#include <string>

#include "base/config.h"
#include "client/group.h"

namespace backstay::client {

// Collective. `socket`: as an absolute path. Errors: config (names the setting, both values and both ranks).
Status check_node_settings(const Group& group, const Config& config, const std::string& socket);

}  // namespace backstay::client
