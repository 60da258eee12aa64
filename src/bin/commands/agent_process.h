// Ending an agent by its process id: one whose socket has gone cannot be asked.
#pragma once

#include "base/result.h"

namespace backstay::bin {

// Asks it to end by SIGTERM, twice with `now` (what is not on the disk is given up then), and waits
// for the end.
// Errors: not_found (no such process), invalid (it is no agent), permission, timeout.
Status end_agent_process(int pid, bool now, double timeout_s);

}  // namespace backstay::bin
