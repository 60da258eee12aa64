// Chooses the versions that an agent removes from its disk and from shared storage
// (store/retention.h), given what it knows of the job. Pure: no I/O, no clock.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/version/version_table.h"
#include "store/retention.h"

namespace backstay::agent {

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
