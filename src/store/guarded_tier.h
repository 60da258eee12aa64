// A tier that writes and removes nothing once its lock is lost: then what lies there is of another
// run. Reading goes on. Nor is a small object put beside what was created in a folder that has gone
// since (Code::io): a record must not speak of a segment that lies elsewhere. Threads as of the
// tier below. Errors: also those of JobLock::check().
#pragma once

#include <memory>

#include "store/job_lock.h"
#include "tier/tier.h"

namespace backstay::store {

// `lock` may be null: then it is the tier itself.
std::unique_ptr<tier::Tier> guarded(std::unique_ptr<tier::Tier> tier, const HeldLock& lock);

}  // namespace backstay::store
