// Which versions of a job are removed so that its storage holds what the user asked for. Pure: no
// I/O, no clock.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/version/version_table.h"

namespace backstay::agent {

// Which of `versions` retention removes so that `keep` good ones stay: every older one, damaged
// ones that are older than the newest good one, in doubt ones that are older than all that stay;
// never the newest good one, nor the newest of the highest level that a good one has. Doubtful ones
// do not count.
//
// `announced`: the newest that is known to be protected on all nodes; 0: none is. Of those that are
// recorded as protected here that one stays, and every newer one: another node may have removed its
// part before it could record it, and only the announced one is sure to be there when nodes are
// lost (docs/protocol/tree.md, "Commit of a level").
std::vector<VersionNumber> expired(const std::vector<StoredVersion>& versions, std::uint32_t keep,
                                   VersionNumber announced);

// Versions to remove from this node's disk so that `keep` good ones stay: none that is pinned, or
// ordered to be removed, or needed by one that stays. The newest first: one that cannot be removed
// may need those behind it.
std::vector<VersionNumber> expired(const VersionTable& table, std::uint32_t keep);

// What may be removed at once where a new version finds no room.
struct Reclaim {
  std::vector<VersionNumber> versions;
  // These only if each of `once_recorded` has its commit record by then: it takes their place.
  std::vector<VersionNumber> later;
  std::vector<VersionNumber> once_recorded;
};
// `recorded_soon`: versions that are on their way to their record.
Reclaim reclaimable(const VersionTable& table, std::uint32_t keep,
                    std::vector<VersionNumber> recorded_soon);

// Versions on shared storage that are not kept there once `next` is there, the newest first.
std::vector<VersionNumber> shared_expired(const VersionTable& table,
                                          const format::CommitRecord& next, std::uint32_t keep);

}  // namespace backstay::agent
