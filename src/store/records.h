// Commit records: steps commit.4 (the record is put: the version exists from here on) and commit.5
// (the job's folder is synced). Blocks on the tier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/commit.h"
#include "tier/tier.h"

namespace backstay::store {

// ok: a part is there that the record may speak of. `part`: which one, of a run of several nodes;
// none: any. Errors: not_found, and those of the tier.
Status find_part(tier::Tier& tier, const std::string& job, const format::CommitRecord& record,
                 std::optional<NodeId> part);

struct Recording {
  format::CommitRecord* record = nullptr;  // gets the time at which it is written
  Status done = {};
};
// The version exists from here on; safe on return. The record gets the time at which it is written.
Status put_record(tier::Tier& tier, format::CommitRecord& record);
// All at the same time, of different versions of the job.
void put_at_once(tier::Tier& tier, const std::string& job, std::vector<Recording>& records);

}  // namespace backstay::store
