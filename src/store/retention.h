// Chooses the versions of a job that are removed so that its storage holds what the user asked for.
// Pure: no I/O, no clock.
#pragma once

#include <cstdint>
#include <vector>

#include "store/stored_version.h"

namespace backstay::store {

// The ones of `versions` that go so that `keep` good ones stay: every older one, damaged
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

}  // namespace backstay::store
