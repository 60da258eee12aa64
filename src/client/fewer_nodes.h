// A job that `backstay run` restarts on the nodes that are left.
#pragma once

#include <string>

#include "base/config.h"

namespace backstay::client {

// At a job's start, more copies than its nodes can keep are a mistake, and refused. After lost
// nodes the job goes on with what is possible: as many replicas as losses were to be survived, at
// most one on each other node, also in place of parity. Changes `protect` only if `attempt`
// (BACKSTAY_ATTEMPT, null: not set) is above 0 and the nodes are too few. Returns a line for the
// user then, else "".
std::string keep_what_nodes_allow(Config::Protect& protect, int nodes, const char* attempt);

}  // namespace backstay::client
