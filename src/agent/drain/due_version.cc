#include "agent/drain/due_version.h"

#include <algorithm>
#include <set>

namespace backstay::agent {

VersionNumber newest_durable(const JobState& state) {
  VersionNumber newest = 0;
  for (const auto& [number, row] : state.versions.rows()) {
    if (row.durable()) newest = number;
  }
  return newest;
}

namespace {

// What versions on this disk that are not durable yet need, and what that needs in its turn.
std::set<VersionOfRun> needed_by_pending(const JobState& state) {
  std::set<VersionOfRun> needed;
  const auto& rows = state.versions.rows();
  for (auto at = rows.rbegin(); at != rows.rend(); ++at) {  // what is needed is older
    const auto& [number, row] = *at;
    if (!row.good()) continue;
    const bool pending = !row.durable() || needed.contains({number, row.disk->record.run});
    if (!pending) continue;
    for (const format::Need& need : row.disk->record.needs) needed.emplace(need.version, need.run);
  }
  return needed;
}

// The version from which `durable.every` counts. One that was copied because a newer one needs it,
// before its own turn, does not count until that one is durable: the coordinator may have died
// between the two.
VersionNumber newest_on_schedule(const JobState& state) {
  const std::set<VersionOfRun> needed = needed_by_pending(state);
  VersionNumber newest = 0;
  for (const auto& [number, row] : state.versions.rows()) {
    if (!row.durable()) continue;
    const bool has_its_turn = number >= newest + state.durable_settings.every;
    if (has_its_turn || !needed.contains({number, row.shared->record.run})) newest = number;
  }
  return newest;
}

}  // namespace

DueVersion::DueVersion(const JobState& state, VersionNumber target)
    : state_(state), newest_durable_(newest_on_schedule(state)), target_(target) {
  if (const auto& failed = state.versions.last_not_copied()) given_up_ = failed->version;
}

void DueVersion::consider(VersionNumber version, bool waited) {
  if (version <= given_up_ || state_.is_durable(version)) return;
  if (waited && (waited_ == 0 || version < waited_)) waited_ = version;
  if (not_home_ == 0 && state_.versions.is_pinned(version, PinReason::not_home)) {
    not_home_ = version;  // versions are considered in their order: this is the oldest
  }
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
