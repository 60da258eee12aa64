// The settings of a job, not of a node: all ranks take those of rank 0.
//
// A launcher may hand the environment to the ranks of its own host only, and each host may have a
// file of its own. Ranks that differ in these settings would wait for each other without end, or
// misread a level.
#pragma once

#include "base/config.h"
#include "client/group.h"

namespace backstay::client {

// Collective. Sets in `config`: checkpoint, durable except stop_timeout_s, drain, storage.keep,
// strategy, and the number and rate of copies in protect.
Status take_settings_of_rank_0(const Group& group, Config& config);

}  // namespace backstay::client
