#include "agent/version/why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace backstay::agent {

namespace {

using Cause = WhyNot::Cause;

WhyNot because(Cause cause, const Error& why) { return {cause, why.code(), why.message()}; }

// The run was restarted from it, with other nodes' parts, and those keep it so far.
bool is_elsewhere(const JobState& state, VersionNumber version) {
  const bool restarted = version != 0 && version == state.elsewhere.restarted_from.first;
  return restarted && version == state.went_on_from.version() && state.is_gone(version);
}

// Its replicas may have been on nodes outside of this run, and whether all are made again is not
// counted: such a version is reported as local at most.
bool is_of_earlier_run(const JobState& state, VersionNumber version) {
  if (state.nodes == 1) return false;
  const VersionRow* row = state.versions.find(version);
  return row != nullptr && row->is_listed() ? !row->is_of(state.run) : is_elsewhere(state, version);
}

// Of a version that has bytes in the pool.
ReportedVersion in_pool(const MemoryVersion& held, const VersionRow* listed) {
  if (!held.captured) return {};
  if (held.failed) return {Level::captured, because(Cause::not_written, *held.failed)};
  if (listed == nullptr) return {Level::captured, std::nullopt};
  return {Level::captured, WhyNot{Cause::damaged, Code::corrupt, listed->disk->damage}};
}

// Of a version of which this node knows no level.
WhyNot unknown(const JobState& state, VersionNumber version, const VersionRow* listed) {
  if (listed != nullptr) return {Cause::damaged, Code::corrupt, listed->disk->damage};
  return {
      Cause::not_there, Code::not_found,
      fmt::format("version {0} of job {1} does not exist; `backstay ls {1}` lists what there is",
                  version, state.name)};
}

}  // namespace

ReportedVersion reported(const JobState& state, VersionNumber version) {
  if (state.is_durable(version)) return {Level::durable, std::nullopt};
  const VersionRow* row = state.versions.find(version);
  if (row != nullptr && row->good()) {
    const bool earlier = is_of_earlier_run(state, version);
    return {earlier ? std::min(row->announced, Level::local) : row->announced, std::nullopt};
  }
  const VersionRow* listed = row != nullptr && row->is_listed() ? row : nullptr;
  if (const auto held = state.memory.find(version); held != state.memory.end()) {
    // Its buffers went once it was on the disk, and there it is damaged since: nothing of it is
    // left.
    const bool local = state.is_local(held->second);
    if (!local || held->second.whole) return in_pool(held->second, local ? listed : nullptr);
  }
  // This node's part is on the disk; the other nodes have not said so.
  if (row != nullptr && row->is_of(state.run) && listed == nullptr) {
    return {Level::captured, std::nullopt};
  }
  if (listed == nullptr && is_elsewhere(state, version)) {
    // Without a record, another node's part may be in its pool alone.
    const auto& [restarted_from, decided] = state.elsewhere;
    return {decided.contains(restarted_from) ? Level::local : Level::captured, std::nullopt};
  }
  return {Level::none, unknown(state, version, listed)};
}

bool is_configured(const JobState& state, Level level) {
  if (level == Level::protected_ && (state.replicas > 0 || state.parity)) return true;
  return level <= Level::local || (level == Level::durable && state.durable_settings.on());
}

Level highest_level(const JobState& state) {
  for (const Level level : {Level::durable, Level::protected_}) {
    if (is_configured(state, level)) return level;
  }
  return Level::local;
}

WhyNot not_configured(const JobState& state, Level level) {
  return {Cause::not_configured, Code::unsupported,
          fmt::format("level {} is not configured; the highest here is {}", level_name(level),
                      level_name(highest_level(state)))};
}

namespace {

// Nothing but a copy to shared storage is missing.
std::optional<WhyNot> why_not_durable(const JobState& state, VersionNumber version) {
  const auto& failed = state.versions.last_not_copied();
  if (!failed || failed->version < version) return std::nullopt;
  if (failed->version == version) return because(Cause::not_copied, failed->error);
  return WhyNot{Cause::left_out, failed->error.code(),
                fmt::format("it was left out for version {}, which could not be copied: {}",
                            failed->version, failed->error.message())};
}

// What keeps every version from getting further.
std::optional<WhyNot> why_none(const JobState& state, VersionNumber version, Level has) {
  const auto& cut_off = state.versions.members_cut_off();
  if (!cut_off.empty()) {
    const auto& [node, why] = *cut_off.begin();
    return because(Cause::no_connection,
                   why.context(fmt::format("version {} stays {}: no connection with node {}",
                                           version, level_name(has), node)));
  }
  const tree::NodeSet& lost = state.versions.members_lost();
  if (lost.empty()) return std::nullopt;
  const std::uint64_t count = lost.count();
  return WhyNot{
      Cause::node_lost, Code::agent_lost,
      fmt::format("version {} stays {}: node {} {}", version, level_name(has),
                  lost.ranges(1)[0].first,
                  count > 1 ? fmt::format("and {} more are lost", count - 1) : "is lost")};
}

// A node of the run keeps it, or all versions, from the level.
std::optional<WhyNot> why_not_on_all(const JobState& state, VersionNumber version, Level has,
                                     Level wanted) {
  const auto nearest = state.versions.nearest(version, has, wanted);
  if (!nearest) return why_none(state, version, has);
  const Blocker& blocker = nearest->blocker;
  return WhyNot{Cause::blocked, blocker.code,
                fmt::format("node {} ({}) keeps version {} from level {}: {}", nearest->node,
                            nearest->host, version, level_name(blocker.level), blocker.why)};
}

}  // namespace

std::vector<WhyNot> why_not(const JobState& state, VersionNumber version, Level wanted) {
  ReportedVersion now = reported(state, version);
  if (now.broken) return {std::move(*now.broken)};
  if (now.level >= wanted) return {};
  if (!is_configured(state, wanted)) return {not_configured(state, wanted)};
  // What is local everywhere becomes durable without copies on other nodes, and without nodes that
  // are lost where there are some.
  const bool durable = wanted == Level::durable;
  std::optional<WhyNot> nearest =
      durable && now.level >= Level::local
          ? why_not_durable(state, version)
          : why_not_on_all(state, version, now.level, durable ? Level::local : wanted);
  std::vector<WhyNot> all;
  if (nearest) all.push_back(std::move(*nearest));
  if (wanted == Level::protected_ && is_of_earlier_run(state, version)) {
    all.push_back({Cause::earlier_run, Code::unsupported,
                   fmt::format("version {} is of an earlier run: it is on the disks, and the next "
                               "version is the first that this run protects",
                               version)});
  }
  return all;
}

std::vector<Blocker> blockers_here(const JobState& state) {
  std::vector<Blocker> all;
  for (const auto& [number, row] : state.versions.rows()) {
    if (row.unrecorded && row.is_of(state.run)) all.push_back(*row.unrecorded);
  }
  for (const auto& [number, version] : state.memory) {
    if (!version.failed || version.info.run != state.run) continue;
    all.push_back({number, Level::local, version.failed->code(), version.failed->message()});
  }
  return all;
}

const CopyFailed* failed_copy(const JobState& state) {
  const auto& failed = state.versions.last_not_copied();
  if (!failed || state.is_durable(failed->version)) return nullptr;
  const auto& rows = state.versions.rows();
  const bool newer = std::any_of(rows.upper_bound(failed->version), rows.end(),
                                 [](const auto& entry) { return entry.second.shared.has_value(); });
  return newer ? nullptr : &*failed;
}

}  // namespace backstay::agent
