// What is configured for a job and not for a node: as rank 0 has it, on all ranks.
//
// A launcher may hand the environment to the ranks of its own host only, and each host may have a file of its own. Ranks
// that differ in these settings would wait for each other for ever, or take a level for what it is not.
#pragma once

#include "base/config.h"
#include "client/group.h"

namespace backstay::client {

// Collective. Sets in `config`: checkpoint, durable but for stop_timeout_s, drain, storage.keep, and of protect how many
// copies and how fast they are made.
Status take_settings_of_rank_0(const Group& group, Config& config);

}  // namespace backstay::client
