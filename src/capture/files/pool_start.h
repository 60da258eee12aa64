// Starts the collector again where it is gone, out of a program that is not ours: as
// client/launch.h starts the agent, without libstdc++.
#pragma once

#include "capture/files/settings.h"

namespace backstay::files {

// Blocks until a collector listens, this one or another, at most ten seconds. False: none could be
// started, or that was tried less than ten seconds ago.
bool start_collector(const PoolSettings& settings);

}  // namespace backstay::files
