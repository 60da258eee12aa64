#include <algorithm>

#include "agent/version/version_table.h"

namespace backstay::agent {

void VersionNeeds::needs(VersionOfRun version, std::span<const format::Need> needs) {
  if (needs.empty()) return;
  std::vector<format::Need>& known = needs_[version];
  known = format::both_needs(known, needs);
}

std::span<const format::Need> VersionNeeds::needs_of(VersionOfRun version) const {
  const auto found = needs_.find(version);
  return found == needs_.end() ? std::span<const format::Need>() : std::span(found->second);
}

VersionNumber VersionNeeds::needed_by(VersionOfRun version,
                                      std::span<const VersionNumber> others) const {
  const auto [number, run] = version;
  for (auto at = needs_.rbegin(); at != needs_.rend(); ++at) {
    const auto& [needing, needs] = *at;
    if (needing.first <= number) return 0;  // needs older ones only
    if (std::ranges::find(others, needing.first) != others.end()) continue;
    const auto need = std::ranges::find(needs, number, &format::Need::version);
    if (need != needs.end() && (run == 0 || need->run == run)) return needing.first;
  }
  return 0;
}

bool VersionNeeds::forget_needs(VersionNumber version) {
  return std::erase_if(needs_,
                       [version](const auto& entry) { return entry.first.first == version; }) != 0;
}

}  // namespace backstay::agent
