// What a tier holds of one job: which versions exist, which are damaged, which are garbage.
//
// Blocks on the tier. Used by a job's store thread and by the command line tools.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/manifest.h"
#include "tier/tier.h"

namespace backstay::agent {

struct StoredVersion {
  VersionNumber version = 0;
  Level level = Level::none;  // none: no valid commit record
  format::CommitRecord record;
  std::string damage;  // why it was set aside; empty if it was not
  // Could not be read lately: it may come back, but nothing older is removed for its sake.
  bool doubtful = false;
  // Of a run of several nodes, whole on this one, and without a record here: other nodes may have it. Level none;
  // `record` says what it would be.
  bool undecided = false;
  std::vector<NodeId> parts = {};  // of an undecided one: whose are here, copies too
  // Why its commit record could not be read, where it may be good all the same: nothing may take its place.
  std::optional<Error> unreadable = {};
  bool good() const { return level != Level::none && damage.empty(); }
};

// One version. Level none and no damage: it does not exist, or is garbage.
StoredVersion look_at(tier::Tier& tier, const std::string& job, VersionNumber version);

// One without record or damage: true if it is undecided, and `stored` then says so.
bool look_whether_undecided(tier::Tier& tier, const std::string& job, StoredVersion& stored);

// A folder whose number is further than this beyond the newest good version was copied or made by hand: a job that takes a
// version each second needs 30 years to count so far.
inline constexpr VersionNumber numbers_skipped_max = 1'000'000'000;

// Every version folder of the job, oldest first. `ignored` gets the names that look like one but are
// not written as ours are, and strays: folders beyond numbers_skipped_max whose record is not good. The next version's number
// does not follow theirs, and nothing removes them.
Result<std::vector<StoredVersion>> scan(tier::Tier& tier, const std::string& job,
                                        std::vector<std::string>* ignored = nullptr);

// The largest number that a version without a good record can have, beside these.
VersionNumber counted_to(const std::vector<StoredVersion>& versions);

// The manifest of one node, held against the commit record where the run had one node.
// Errors: not_found, corrupt, format.
Result<format::Manifest> read_manifest(tier::Tier& tier, const std::string& job,
                                       const format::CommitRecord& record, NodeId node);

// True where the bytes themselves are wrong or missing; false where they could just not be read.
bool is_damage(Code code);

// Writes the `damaged` file. The version is not restarted from any more.
Status set_aside(tier::Tier& tier, const std::string& job, VersionNumber version,
                 const std::string& why);

// Which of `versions` retention removes so that `keep` good ones stay: every older one, damaged
// ones that are older than the newest good one, undecided ones that are older than all that stay; never the newest
// good one, nor the newest of the highest level that a good one has. Doubtful ones do not count.
//
// `announced`: the newest that is known to be protected on all nodes; 0: none is. Of those that are recorded as protected
// here that one stays, and every newer one: another node may have removed its part before it could record it, and only the
// announced one is sure to be there when nodes are lost (docs/protocol/tree.md, "Commit of a level").
std::vector<VersionNumber> expired(const std::vector<StoredVersion>& versions, std::uint32_t keep,
                                   VersionNumber announced);

}  // namespace backstay::agent
