#include "agent/redundancy/retention_pin.h"

#include <algorithm>

#include "base/random.h"

namespace backstay::agent {

VersionNumber retention_pin(const VersionTable::Rows& rows, RunId run) {
  VersionNumber best = 0;
  std::uint64_t largest = 0;
  for (auto at = rows.rbegin(); at != rows.rend(); ++at) {
    const auto& [number, row] = *at;
    if (!row.is_of(run) || !row.good()) continue;
    if (row.announced >= Level::protected_) break;
    const std::uint64_t draw = SplitMix64(number).next();
    if (best != 0 && draw <= largest) continue;
    best = number;
    largest = draw;
  }
  return best;
}

void RetentionPin::choose() {
  const VersionTable::Rows& rows = versions_.rows();
  pin(retention_pin_, retention_pin(rows, run_));
  const bool overtaken =
      std::any_of(rows.lower_bound(protected_here_.version()), rows.end(),
                  [](const auto& entry) { return entry.second.announced >= Level::protected_; });
  if (overtaken) protected_here_.release();
  if (overtaken || has_told_(protected_here_.version())) told_.release();
}

void RetentionPin::protected_here(VersionNumber version) {
  if (version <= protected_here_.version()) return;
  if (has_told_(protected_here_.version())) told_ = std::move(protected_here_);
  pin(protected_here_, version);
}

void RetentionPin::pin(VersionPin& held, VersionNumber version) {
  if (held.version() == version) return;
  held.release();
  if (version != 0) held = VersionPin(versions_, version, PinReason::retention_pin);
}

}  // namespace backstay::agent
