#include "agent/version/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

namespace backstay::agent {

wire::LevelIs Levels::level_of(VersionNumber version) const {
  const ReportedVersion now = reported(state_, version);
  wire::LevelIs answer;
  answer.version = version;
  answer.level = now.level;
  if (now.broken) {
    answer.code = now.broken->code;
    answer.message = now.broken->message;
  }
  return answer;
}

// Who still waits for a level asks what keeps the version from that one, any other from the
// highest.
void Levels::query(ConnectionId connection, VersionNumber version) {
  const auto last = std::find_if(waiters_.rbegin(), waiters_.rend(), [&](const Waiter& waiter) {
    return waiter.connection == connection && waiter.await.version == version;
  });
  const Level wanted = last == waiters_.rend() ? highest_level(state_) : last->await.level;
  state_.outbox.send(connection, towards(version, wanted, Asker::query));
}

namespace {

bool is_over(const wire::LevelIs& now, Level wanted) {
  return now.code != Code::ok || now.level >= wanted;
}

}  // namespace

// Who waits hears of what may pass once nothing can be hoped for: members were lost or came back a
// moment ago, and what is lacking may be there again soon. That the version is of an earlier run
// is news only for who waits for it.
bool Levels::is_told(const WhyNot& why, Asker asker) const {
  if (why.cause == WhyNot::Cause::earlier_run) return asker == Asker::await;
  if (asker == Asker::query || !why.may_pass()) return true;
  const std::uint64_t changed_ns = state_.versions.lost_changed_ns();
  return changed_ns == 0 || state_.clock.monotonic_ns() >= changed_ns + state_.lost_patience_ns;
}

// The level of a version, with the reason where it will not get as far as `wanted`.
wire::LevelIs Levels::towards(VersionNumber version, Level wanted, Asker asker) const {
  wire::LevelIs now = level_of(version);
  if (is_over(now, wanted)) return now;
  for (const WhyNot& why : why_not(state_, version, wanted)) {
    if (!is_told(why, asker)) continue;
    now.code = why.code;
    now.message = why.message;
    break;
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
  wire::LevelIs now = towards(await.version, await.level, Asker::await);
  if (is_over(now, await.level)) return state_.outbox.send(connection, std::move(now));
  // One that timed out and asks again is still here from the first time.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    return waiter.connection == connection && waiter.await.version == await.version &&
           waiter.await.level == await.level;
  });
  waiters_.push_back({connection, await});
}

void Levels::await_newer(ConnectionId connection, const wire::AwaitNewer& await) {
  if (!is_configured(state_, await.level)) {
    const WhyNot why = not_configured(state_, await.level);
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
bool Levels::answer(const Tool& tool, VersionNumber version) {
  if (version <= tool.await.after) return false;
  const wire::LevelIs now = towards(version, tool.await.level, Asker::tool);
  // One that does not exist was given up while it was captured: the program may take another.
  if (now.code == Code::not_found || !is_over(now, tool.await.level)) return false;
  if (now.code == Code::ok) {
    come_.push_back({tool.connection, version});
  } else {
    const std::string why = fmt::format("version {} failed: {}", version, now.message);
    state_.outbox.send(tool.connection, wire::Answer{Code::io, why});
  }
  return true;
}

void Levels::changed(VersionNumber version) {
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.await.version != version) return false;
    const wire::LevelIs now = towards(version, waiter.await.level, Asker::await);
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
  std::erase_if(come_, [connection](const Come& one) { return one.tool == connection; });
}

void Levels::close() {
  const wire::Answer ended{Code::not_found, "the programs of job " + state_.name +
                                                " have ended without another version"};
  for (const Tool& tool : std::exchange(tools_, {})) state_.outbox.send(tool.connection, ended);
}

}  // namespace backstay::agent
