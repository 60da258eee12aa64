#include "agent/favoured.h"

#include <utility>

#include "base/random.h"

namespace backstay::agent {

VersionNumber favoured(const std::map<VersionNumber, StoredVersion>& disk, RunId run) {
  VersionNumber best = 0;
  std::uint64_t largest = 0;
  for (auto at = disk.rbegin(); at != disk.rend(); ++at) {
    const StoredVersion& stored = at->second;
    if (stored.record.run != run || !stored.good()) continue;
    if (stored.level >= Level::protected_) break;
    const std::uint64_t draw = SplitMix64(at->first).next();
    if (best != 0 && draw <= largest) continue;
    best = at->first;
    largest = draw;
  }
  return best;
}

void Favoured::choose() { hold(favoured(state_.disk, state_.run)); }

void Favoured::hold(VersionNumber version) {
  const VersionNumber before = std::exchange(held_, version);
  if (before == version) return;
  if (version != 0) state_.store.post(Hold{version, true});
  if (before != 0) state_.store.post(Hold{before, false});
}

}  // namespace backstay::agent
