// Two agents must never write the same job: the one that serves it holds an flock on <dir>/<job>/lock. Two programs of one
// name on different nodes must not share a durable directory: the agent that copies for one that lives holds an flock on
// <durable.dir>/<job>/live (docs/format/durable.md).
// The kernel drops a lock when the agent ends, however it ends. The file holds the process id and the machine's name of who
// locked it last, for messages.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::agent {

// Creates the job's folder (mode 0700) where missing. Blocks on the disk. Errors: busy (another agent holds it),
// config (a folder that can never be made), permission, no_space, io.
Result<Fd> lock_job(const std::string& dir, const std::string& job);

// The same of <durable.dir>/<job>/live. busy: a program of that name on other nodes copies to that directory.
Result<Fd> lock_live(const std::string& dir, const std::string& job);

// Whether an agent holds that of lock_job() now. Shares the lock for an instant to find out: an agent that calls lock_job() in that
// instant is refused (busy), others who look are not. Errors: busy, which names the agent.
Status check_unlocked(const std::string& dir, const std::string& job);

}  // namespace backstay::agent
