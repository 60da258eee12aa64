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

void RetentionPin::choose(bool is_heard) {
  const VersionTable::Rows& rows = state_.versions.rows();
  pin(retention_pin_, retention_pin(rows, state_.run));
  const bool overtaken =
      std::any_of(rows.lower_bound(protected_here_.version()), rows.end(),
                  [](const auto& entry) { return entry.second.announced >= Level::protected_; });
  if (overtaken) protected_here_.release();
  if (overtaken || is_heard) heard_of_.release();
}

void RetentionPin::protected_here(VersionNumber version, bool is_heard) {
  if (is_heard) heard_of_.release();
  if (version <= protected_here_.version()) return;
  if (!is_heard && heard_of_.version() == 0) heard_of_ = std::move(protected_here_);
  pin(protected_here_, version);
}

void RetentionPin::pin(VersionPin& held, VersionNumber version) {
  if (held.version() == version) return;
  held.release();
  if (version != 0) held = VersionPin(state_.versions, version, PinReason::retention_pin);
}

}  // namespace backstay::agent
