#include "store/retention.h"

#include <algorithm>

namespace backstay::store {

namespace {

// The newest good one of the highest level that any good one has: with a newer version that is only
// local the loss of a node would leave nothing. 0: none.
VersionNumber safest(const std::vector<StoredVersion>& versions) {
  const StoredVersion* found = nullptr;
  for (const StoredVersion& stored : versions) {
    if (!stored.good() || stored.doubtful) continue;
    if (found == nullptr || stored.level >= found->level) found = &stored;
  }
  return found == nullptr ? 0 : found->version;
}

// The newest that is recorded as protected here and known to be announced; 0: none.
VersionNumber newest_announced(const std::vector<StoredVersion>& versions,
                               VersionNumber announced) {
  VersionNumber found = 0;
  for (const StoredVersion& stored : versions) {
    const bool counts = stored.good() && !stored.doubtful && stored.level == Level::protected_;
    if (counts && stored.version <= announced) found = std::max(found, stored.version);
  }
  return found;
}

}  // namespace

std::vector<VersionNumber> expired(const std::vector<StoredVersion>& versions, std::uint32_t keep,
                                   VersionNumber announced) {
  std::vector<VersionNumber> out;
  const VersionNumber safe = safest(versions);
  const VersionNumber sure = newest_announced(versions, announced);
  const auto stays = [&](const StoredVersion& stored) {
    const bool may_be_needed = stored.level == Level::protected_ && stored.version >= sure;
    return stored.version == safe || (may_be_needed && !stored.doubtful);
  };
  std::uint32_t good = 0;
  for (auto at = versions.rbegin(); at != versions.rend(); ++at) {
    if (at->good()) {
      const bool enough = good >= std::max(keep, 1u);
      if (enough && !stays(*at)) out.push_back(at->version);
      if (!enough && !at->doubtful) ++good;
    } else if (good >= 1 && !at->damage.empty()) {
      out.push_back(at->version);
    } else if (good >= std::max(keep, 1u) && at->in_doubt) {
      out.push_back(at->version);
    }
  }
  return out;
}

}  // namespace backstay::store
