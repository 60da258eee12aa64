#include "agent/redundancy/favoured.h"

#include <algorithm>
#include <utility>

#include "agent/disk/links.h"
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

Favoured::~Favoured() {
  hold(favoured_, 0);
  hold(protected_here_, 0);
}

void Favoured::choose() {
  hold(favoured_, favoured(state_.disk, state_.run));
  const auto is_protected = [](const auto& entry) {
    return entry.second.level >= Level::protected_;
  };
  const auto from = state_.disk.lower_bound(protected_here_);
  if (std::any_of(from, state_.disk.end(), is_protected)) hold(protected_here_, 0);
}

void Favoured::protected_here(VersionNumber version) {
  if (version > protected_here_) hold(protected_here_, version);
}

void Favoured::hold(VersionNumber& held, VersionNumber version) {
  const VersionNumber before = std::exchange(held, version);
  if (before == version) return;
  if (version != 0) state_.store.post(Hold{version, true});
  if (before != 0) state_.store.post(Hold{before, false});
}

}  // namespace backstay::agent
