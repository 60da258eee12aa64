// What a tier holds of one job: which versions exist, which are damaged, which are garbage.
//
// Blocks on the tier. Used by a job's store thread and by the command line tools.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/stored_version.h"
#include "tier/tier.h"

namespace backstay::store {

// One version. Level none and no damage: it does not exist, or is garbage.
StoredVersion look_at(tier::Tier& tier, const std::string& job, VersionNumber version);

// One without record or damage: true if it is in doubt, and `stored` then says so. Where that could
// not be read, `stored` is unreadable.
bool find_in_doubt(tier::Tier& tier, const std::string& job, StoredVersion& stored);

// After look_at(): false if the version does not exist, or is garbage. Where only the manifests can
// tell, it calls find_in_doubt().
bool exists(tier::Tier& tier, const std::string& job, StoredVersion& stored);

// A folder whose number is further than this beyond the newest good version was copied or made by
// hand: a job that takes a version each second needs 30 years to count so far.
inline constexpr VersionNumber numbers_skipped_max = 1'000'000'000;

// The needs of all files of a recorded version that are here. For a run of several nodes this reads
// the manifests: the record has the needs of one part, and copies of other parts may be here.
std::vector<format::Need> needs_there(tier::Tier& tier, const std::string& job,
                                      const StoredVersion& stored);

// Every version folder of the job, oldest first. `ignored` gets the names that look like one but
// are not written as ours are, and strays: folders beyond numbers_skipped_max whose record is not
// good. The next version's number does not follow theirs, and nothing removes them.
Result<std::vector<StoredVersion>> scan(tier::Tier& tier, const std::string& job,
                                        std::vector<std::string>* ignored = nullptr);

// The same as an agent's table of versions wants it: in doubt where they are, with their needs, and
// without garbage, which `clean` removes. What is odd is logged.
Result<std::vector<StoredVersion>> scan_for_agent(tier::Tier& tier, const std::string& job,
                                                  bool clean);

// The largest number that a version without a good record can have, beside these.
VersionNumber counted_to(const std::vector<StoredVersion>& versions);

// The manifest of one node, held against the commit record where the run had one node.
// Errors: not_found, corrupt, format.
Result<format::Manifest> read_manifest(tier::Tier& tier, const std::string& job,
                                       const format::CommitRecord& record, NodeId node);

// True where the bytes themselves are wrong or missing; false where they could just not be read.
inline bool is_damage_or_gone(Code code) { return is_damage(code) || code == Code::not_found; }

// Writes the `damaged` file. The version is not restarted from any more.
Status set_aside(tier::Tier& tier, const std::string& job, VersionNumber version,
                 const std::string& why);

}  // namespace backstay::store
