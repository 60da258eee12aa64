// Limits of resources (getrlimit) that the agent inherits from whoever started it. A job step's limits are meant
// for that step; the agent serves others too.
#pragma once

#include <string>
#include <vector>

namespace backstay::bin {

// Raises soft limits to the hard ones, and makes a file that would grow too large an error of the write (EFBIG)
// instead of the end of the process. Returns a sentence for each limit that stays and may do harm.
std::vector<std::string> lift_limits();

// The calling thread, and those that it starts, stand back by `nice` (0 to 19), or as far as they do already.
// To be called while there is one thread.
void stand_back(int nice);

}  // namespace backstay::bin
