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

DueVersion::DueVersion(const JobState& state, VersionNumber target)
    : state_(state), newest_durable_(newest_durable(state)), target_(target) {
  if (const auto& failed = state.versions.last_not_copied()) given_up_ = failed->version;
}

void DueVersion::consider(VersionNumber version, bool waited) {
  if (version <= given_up_ || state_.is_durable(version)) return;
  if (waited && (waited_ == 0 || version < waited_)) waited_ = version;
  const bool is_due = version >= newest_durable_ + state_.durable_settings.every;
  if (is_due || version == target_) due_ = std::max(due_, version);
}

VersionNumber DueVersion::answer() const {
  VersionNumber next = target();
  while (const VersionNumber needed = first_needed(next)) next = needed;
  return next;
}

// Of what this node's part needs, one that is to be copied before it; 0: nothing is, or it cannot
// be, and the copy says so.
VersionNumber DueVersion::first_needed(VersionNumber version) const {
  const VersionRow* row = state_.versions.find(version);
  if (row == nullptr || !row->good()) return 0;
  for (const format::Need& need : row->disk->record.needs) {
    const VersionRow* needed = state_.versions.find(need.version);
    const bool there = needed != nullptr && needed->good() && needed->is_of(need.run);
    if (there && !needed->durable()) return need.version;
  }
  return 0;
}

}  // namespace backstay::agent
