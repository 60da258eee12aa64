// Limits of resources (getrlimit) that the agent inherits from whoever started it. A job step's limits are meant
// for that step; the agent serves others too.
#pragma once

#include <string>
#include <vector>

namespace backstay::bin {

// Raises soft limits to the hard ones, and makes a file that would grow too large an error of the write (EFBIG)
// instead of the end of the process. Returns a sentence for each limit that stays and may do harm.
std::vector<std::string> lift_limits();

}  // namespace backstay::bin
