#include "agent/drain/due_version.h"

#include <algorithm>

namespace backstay::agent {

VersionNumber newest_durable(const JobState& state) {
  VersionNumber newest = 0;
  for (const auto& [number, row] : state.versions.rows()) {
    if (row.durable()) newest = number;
  }
  return newest;
}

DueVersion::DueVersion(const JobState& state)
    : state_(state), newest_durable_(newest_durable(state)) {
  if (state.copy_failed) given_up_ = state.copy_failed->version;
}

void DueVersion::consider(VersionNumber version, bool waited) {
  if (version <= given_up_ || state_.is_durable(version)) return;
  if (waited && (waited_ == 0 || version < waited_)) waited_ = version;
  if (version >= newest_durable_ + state_.durable_settings.every) due_ = std::max(due_, version);
}

}  // namespace backstay::agent
