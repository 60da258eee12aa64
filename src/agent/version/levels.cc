#include "agent/version/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace backstay::agent {

// The job was restarted from it, with other nodes' parts, and retention has not removed it since.
bool Levels::is_elsewhere(VersionNumber version) const {
  const bool restarted = version != 0 && version == state_.elsewhere.restarted_from.first;
  if (!restarted || !state_.is_gone(version)) return false;
  const auto& rows = state_.versions.rows();
  const auto newer = std::count_if(rows.upper_bound(version), rows.end(),
                                   [](const auto& entry) { return entry.second.good(); });
  return newer < state_.keep;
}

// Its replicas may have been on nodes outside of this run, and whether all are made again is not
// counted: such a version is reported as local at most.
bool Levels::is_of_earlier_run(VersionNumber version) const {
  if (state_.nodes == 1) return false;
  const VersionRow* row = state_.versions.find(version);
  return row != nullptr && row->is_listed() ? !row->is_of(state_.run) : is_elsewhere(version);
}

namespace {

// Of a version that has bytes in the pool.
wire::LevelIs level_in_pool(const MemoryVersion& held, bool local, const VersionRow* row) {
  wire::LevelIs answer;
  answer.version = held.info.version;
  if (!held.captured) return answer;
  answer.level = Level::captured;
  if (local && row->is_listed()) {
    answer.code = Code::corrupt;
    answer.message = row->disk->damage;
  }
  if (held.failed) {
    answer.code = held.failed->code();
    answer.message = held.failed->message();
  }
  return answer;
}

}  // namespace

wire::LevelIs Levels::level_of(VersionNumber version) const {
  wire::LevelIs answer;
  answer.version = version;
  if (state_.is_durable(version)) {
    answer.level = Level::durable;
    return answer;
  }
  const VersionRow* row = state_.versions.find(version);
  if (row != nullptr && row->good()) {
    answer.level = row->announced;
    if (is_of_earlier_run(version)) answer.level = std::min(answer.level, Level::local);
    return answer;
  }
  if (const auto held = state_.memory.find(version); held != state_.memory.end()) {
    // Its buffers went once it was on the disk, and there it is damaged since: nothing of it is
    // left.
    const bool local = state_.is_local(held->second);
    if (!local || held->second.whole) return level_in_pool(held->second, local, row);
  }
  // This node's part is on the disk; the other nodes have not said so.
  if (row != nullptr && row->is_of(state_.run) && !row->is_listed()) {
    answer.level = Level::captured;
    return answer;
  }
  if ((row == nullptr || !row->is_listed()) && is_elsewhere(version)) {
    // Without a record, another node's part may be in its pool alone.
    const auto& [restarted_from, decided] = state_.elsewhere;
    answer.level = decided.contains(restarted_from) ? Level::local : Level::captured;
    return answer;
  }
  answer.code = Code::not_found;
  answer.message =
      fmt::format("version {0} of job {1} does not exist; `backstay ls {1}` lists what there is",
                  version, state_.name);
  if (row != nullptr && row->is_listed()) {
    answer.code = Code::corrupt;
    answer.message = row->disk->damage;
  }
  return answer;
}

// Who still waits for a level asks what keeps the version from that one, any other from the
// highest.
void Levels::query(ConnectionId connection, VersionNumber version) {
  const auto last = std::find_if(waiters_.rbegin(), waiters_.rend(), [&](const Waiter& waiter) {
    return waiter.connection == connection && waiter.await.version == version;
  });
  const Level wanted = last == waiters_.rend() ? highest() : last->await.level;
  state_.outbox.send(connection, towards(version, wanted, /*waits=*/false));
}

namespace {

bool is_over(const wire::LevelIs& now, Level wanted) {
  return now.code != Code::ok || now.level >= wanted;
}

wire::LevelIs not_configured(wire::LevelIs now, Level level, Level highest) {
  now.code = Code::unsupported;
  now.message = fmt::format("level {} is not configured; the highest here is {}", level_name(level),
                            level_name(highest));
  return now;
}

}  // namespace

bool Levels::is_configured(Level level) const {
  if (level == Level::protected_ && (state_.replicas > 0 || state_.parity)) return true;
  return level <= Level::local || (level == Level::durable && state_.durable_settings.on());
}

Level Levels::highest() const {
  for (const Level level : {Level::durable, Level::protected_}) {
    if (is_configured(level)) return level;
  }
  return Level::local;
}

// Members were lost or came back a moment ago: what is lacking may be there again soon.
bool Levels::may_pass() const {
  const std::uint64_t changed_ns = state_.blockers.lost_changed_ns();
  return changed_ns != 0 && state_.clock.monotonic_ns() < changed_ns + state_.lost_patience_ns;
}

// The level of a version, with the reason where it will not get as far as `wanted`.
// `waits`: who asks hears it only once nothing can be hoped for.
wire::LevelIs Levels::towards(VersionNumber version, Level wanted, bool waits) const {
  wire::LevelIs now = level_of(version);
  if (is_over(now, wanted)) return now;
  if (!is_configured(wanted)) {
    return not_configured(now, wanted, highest());
  }
  // What is local everywhere becomes durable without copies on other nodes, and without nodes that
  // are lost where there are some.
  const bool durable = wanted == Level::durable;
  if (durable && now.level >= Level::local) {
    if (!state_.copy_failed || state_.copy_failed->version < version) return now;
    now.code = state_.copy_failed->error.code();
    now.message = state_.copy_failed->error.message();
    if (state_.copy_failed->version != version) {
      now.message = fmt::format("it was left out for version {}, which could not be copied: {}",
                                state_.copy_failed->version, now.message);
    }
  } else if (const auto blocker =
                 state_.blockers.of(version, now.level, durable ? Level::local : wanted);
             blocker && !(waits && may_pass())) {
    now.code = blocker->code();
    now.message = blocker->message();
  }
  return now;
}

bool Levels::wanted_durable(VersionNumber version) const {
  const auto waits = [version](const Waiter& one) {
    return one.await.level == Level::durable && one.await.version == version;
  };
  const auto asks = [version](const Tool& one) {
    return one.await.level == Level::durable && one.await.after < version;
  };
  return std::any_of(waiters_.begin(), waiters_.end(), waits) ||
         std::any_of(tools_.begin(), tools_.end(), asks);
}

void Levels::await(ConnectionId connection, const wire::Await& await) {
  wire::LevelIs now = towards(await.version, await.level, /*waits=*/true);
  if (!is_over(now, await.level) && await.level == Level::protected_ &&
      is_of_earlier_run(await.version)) {
    now.code = Code::unsupported;
    now.message = fmt::format(
        "version {} is of an earlier run: it is on the disks, and the next version is the first "
        "that this run protects",
        await.version);
  }
  if (is_over(now, await.level)) return state_.outbox.send(connection, std::move(now));
  // One that timed out and asks again is still here from the first time.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    return waiter.connection == connection && waiter.await.version == await.version &&
           waiter.await.level == await.level;
  });
  waiters_.push_back({connection, await});
}

void Levels::await_newer(ConnectionId connection, const wire::AwaitNewer& await) {
  if (!is_configured(await.level)) {
    const wire::LevelIs why = not_configured({}, await.level, Level::local);
    return state_.outbox.send(connection, wire::Answer{why.code, why.message});
  }
  const Tool tool{connection, await};
  const auto answered = [&](VersionNumber version) { return answer(tool, version); };
  if (std::ranges::none_of(known(), answered)) tools_.push_back(tool);
}

std::set<VersionNumber> Levels::known() const {
  std::set<VersionNumber> all;
  for (const auto& [number, held] : state_.memory) all.insert(number);
  for (const auto& [number, row] : state_.versions.rows()) all.insert(number);
  return all;
}

// True if the tool has its answer now.
bool Levels::answer(const Tool& tool, VersionNumber version) const {
  if (version <= tool.await.after) return false;
  const wire::LevelIs now = towards(version, tool.await.level, /*waits=*/true);
  // One that does not exist was given up while it was captured: the program may take another.
  if (now.code == Code::not_found || !is_over(now, tool.await.level)) return false;
  wire::Answer answer{Code::ok, describe_(version)};
  if (now.code != Code::ok) {
    answer = {Code::io, fmt::format("version {} failed: {}", version, now.message)};
  }
  state_.outbox.send(tool.connection, answer);
  return true;
}

void Levels::changed(VersionNumber version) {
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.await.version != version) return false;
    const wire::LevelIs now = towards(version, waiter.await.level, /*waits=*/true);
    if (!is_over(now, waiter.await.level)) return false;
    state_.outbox.send(waiter.connection, now);
    return true;
  });
  std::erase_if(tools_, [&](const Tool& tool) { return answer(tool, version); });
}

void Levels::changed() {
  std::set<VersionNumber> awaited;
  for (const Waiter& waiter : waiters_) awaited.insert(waiter.await.version);
  if (!tools_.empty()) awaited.merge(known());
  for (const VersionNumber version : awaited) changed(version);
}

void Levels::forget(ConnectionId connection) {
  const auto is_its = [connection](const auto& one) { return one.connection == connection; };
  std::erase_if(waiters_, is_its);
  std::erase_if(tools_, is_its);
}

void Levels::close() {
  const wire::Answer ended{Code::not_found, "the programs of job " + state_.name +
                                                " have ended without another version"};
  for (const Tool& tool : std::exchange(tools_, {})) state_.outbox.send(tool.connection, ended);
}

}  // namespace backstay::agent
