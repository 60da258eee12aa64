// What a job does with its versions: the orders of their table (agent/version/version_table.h), and
// versions that tools or the agent's end take away.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/job/job.h"
#include "agent/job/job_status.h"
#include "agent/version/retention.h"
#include "base/log.h"

namespace backstay::agent {

// With a record on this node's disk, which others may remove; not those that go anyway.
std::vector<VersionNumber> Job::recorded_here() const {
  std::vector<VersionNumber> all;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.disk && row.disk->level != Level::none && !row.removing) all.push_back(number);
  }
  return all;
}

// Before a run begins: who removed them wants a fresh start, so the pool forgets them as well.
void Job::looked(const Looked& event) {
  looking_ = false;
  for (const VersionNumber version : event.gone) {
    spdlog::warn("others removed it from the disk job={} version={}", state_.name, version);
    state_.versions.removed(version, Where::disk);
  }
  carry_out();
  admit_waiting(Status());
}

void Job::carry_out() {
  for (const VersionNumber version : home_files_.take_at_home()) writers_.brought_home(version);
  for (;;) {
    const VersionOrders orders = state_.versions.take_orders();
    if (orders.empty()) break;
    for (const VersionNumber version : orders.gone) gone(version);
    for (const Announcement& now : orders.announced) announced(now);
    for (const VersionNumber version : orders.changed) levels_.changed(version);
    if (orders.all_changed) levels_.changed();
    if (!orders.retain) continue;
    std::vector<VersionNumber> due = expired(state_.versions, state_.keep);
    for (const VersionNumber version : due) state_.versions.ordered(version, StoreOrder::remove);
    if (!due.empty()) state_.store.post(RemoveVersions{std::move(due)});
  }
  for (const auto& [tool, version] : levels_.take_come()) {
    state_.outbox.send(tool, wire::Answer{Code::ok, text_of(version_json(state_, version))});
  }
}

// From this node's disk, by whatever way: the pool forgets it as well.
void Job::gone(VersionNumber version) {
  state_.release(version);
  writers_.gone(version);
  home_files_.gone(version);
  if (redundancy_) redundancy_->removed(version);
  state_.record("removed", {{"version", version}});
}

// Every node has recorded it.
void Job::announced(const Announcement& now) {
  const StoredVersion& stored = now.version;
  const bool goes_on = stored.record.run == state_.run;
  if (goes_on && stored.version > state_.went_on_from.version()) state_.went_on_from.release();
  if (now.before == Level::none) {
    writers_.run_began() ? writers_.local(stored) : capture_.local(stored);
    home_files_.local(stored);
  }
  if (redundancy_ && stored.level == Level::protected_) {
    redundancy_->protected_everywhere(stored.version);
    state_.record("protected", {{"version", stored.version}});
  }
  durability_.consider();
}

Status Job::forget(VersionNumber version) {
  if (!scanned_) return Error(Code::busy, "the agent is opening the job; try again");
  if (!restores_.empty()) return Error(Code::busy, "a restart of the job is under way");
  if (const MemoryVersion* held = state_.in_memory(version)) {
    if (!held->captured) return Error(Code::busy, "it is being captured");
    if (!state_.is_local(*held) && !held->failed)
      return Error(Code::busy, "the agent is writing it");
  }
  const StoredVersion* here = state_.on_disk(version);
  const RunId run = here == nullptr ? 0 : here->record.run;
  if (const VersionNumber needing = state_.versions.needed_by({version, run})) {
    return Error(Code::busy, fmt::format("version {} needs it", needing));
  }
  if (durability_.copying() == version) {
    return Error(Code::busy, "the agent is copying it to the durable directory");
  }
  if (here != nullptr) {
    state_.versions.removed(version, Where::disk);
  } else {
    gone(version);
    state_.versions.changed(version);
  }
  carry_out();
  spdlog::info("version forgotten, a tool removes it job={} version={}", state_.name, version);
  return {};
}

Status Job::copied(VersionOfRun version) {
  const VersionRow* row = state_.versions.find(version.first);
  const bool whole =
      row != nullptr && row->is_of(version.second) && row->good() && row->disk->record.nodes == 1;
  if (!whole) {
    return Error(Code::not_found, fmt::format("{} has no complete version {} of that run here",
                                              state_.name, version.first));
  }
  if (home_files_.is_renamed(version.first)) {
    return Error(Code::state, fmt::format("a file of version {} was renamed on its way to its path",
                                          version.first));
  }
  if (row->announced < Level::protected_) commit_coordinator_.held_protected(version.first);
  carry_out();
  return {};
}

bool Job::drop_unwritable() {
  if (has_processes() || !restores_.empty()) return false;
  const auto found =
      std::find_if(state_.memory.begin(), state_.memory.end(),
                   [](const auto& entry) { return entry.second.failed && !entry.second.dropping; });
  if (found == state_.memory.end()) return false;
  const VersionNumber number = found->first;
  spdlog::error(
      "version given up: it cannot be written, its program has ended, and another job needs the "
      "pool job={} version={} error=\"{}\"",
      state_.name, number, found->second.failed->to_string());
  state_.record("dropped", {{"version", number}, {"why", found->second.failed->message()}});
  state_.store.post(AbortVersion{number, found->second.info.node});
  state_.release(number);
  home_files_.gone(number);
  state_.versions.changed(number);
  carry_out();
  return true;
}

std::vector<std::string> Job::only_in_memory() const {
  std::vector<std::string> lost;
  for (const auto& [number, version] : state_.memory) {
    if (!version.captured || state_.is_safe(version) || version.dropping) continue;
    if (home_files_.is_called_back(number)) continue;
    lost.push_back(
        fmt::format("version {} of job {}: {}", number, state_.name,
                    version.failed ? version.failed->message() : "it was not written yet"));
  }
  return lost;
}

std::vector<std::string> Job::left_in_doubt() const {
  std::vector<std::string> left;
  if (!commit_coordinator_.in_doubt()) return left;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (!row.in_doubt() || !row.is_of(state_.run)) continue;
    const std::vector<WhyNot> why = why_not(state_, number, Level::local);
    left.push_back(fmt::format(
        "version {} of job {}: {}; it counts only where another node has its record", number,
        state_.name, why.empty() ? "not all nodes have said that they hold it" : why[0].message));
  }
  return left;
}

}  // namespace backstay::agent
