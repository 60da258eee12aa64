// A tier that writes and removes nothing once `check` fails: then what lies there is of another run. Reading goes on.
// Threads as of the tier below, if `check` bears them. Errors: also those of `check`.
#pragma once

#include <functional>
#include <memory>

#include "agent/job_lock.h"
#include "tier/tier.h"

namespace backstay::agent {

std::unique_ptr<tier::Tier> guard(std::unique_ptr<tier::Tier> tier, std::function<Status()> check);

// The same with a lock that must hold; null: there is none.
std::unique_ptr<tier::Tier> guarded(std::unique_ptr<tier::Tier> tier, const HeldLock& lock);

}  // namespace backstay::agent
