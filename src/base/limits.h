// Limits of resources (getrlimit) that the agent, a collector or a mount inherits from its starter.
// A job step's limits are meant for that step; these processes serve others too.
#pragma once

#include <string>
#include <vector>

namespace backstay {

// Raises soft limits to the hard ones, and makes a file that would grow too large an error of the
// write (EFBIG) instead of the end of the process. Returns a sentence for each limit that stays and
// may do harm.
std::vector<std::string> lift_limits();

// Lowers the priority of the calling thread, and of those that it starts, by `nice` (0 to 19),
// unless it is lower already. To be called while there is one thread.
void stand_back(int nice);

}  // namespace backstay
