// Two agents must never write the same job: the one that serves it holds an flock on <dir>/<job>/lock.
// The kernel drops it when the agent ends, however it ends. The file holds the process id and the machine's name of who
// locked it last, for messages.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::agent {

// Creates the job's folder (mode 0700) where missing. Blocks on the disk. Errors: busy (another agent holds it),
// config (a folder that can never be made), permission, no_space, io.
Result<Fd> lock_job(const std::string& dir, const std::string& job);

// Whether an agent holds it now. Takes the lock for an instant to find out: an agent that calls lock_job() in that
// instant is refused (busy). Errors: busy, which names the agent.
Status check_unlocked(const std::string& dir, const std::string& job);

}  // namespace backstay::agent
