// The store and its commit records: steps commit.4 and commit.5 of store.h. Blocks on the tier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/commit.h"
#include "tier/tier.h"

namespace backstay::agent {

// ok: a part is there that the record may speak of. `part`: which one, of a run of several nodes;
// none: any. Errors: not_found, and those of the tier.
Status find_part(tier::Tier& tier, const std::string& job, const format::CommitRecord& record,
                 std::optional<NodeId> part);

struct Recording {
  format::CommitRecord* record = nullptr;  // gets the time at which it is written
  Status done = {};
};
// All at the same time, of different versions of the job.
void put_at_once(tier::Tier& tier, const std::string& job, std::vector<Recording>& records);

}  // namespace backstay::agent
