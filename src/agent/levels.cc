#include "agent/levels.h"

#include <fmt/format.h>

#include <algorithm>

namespace backstay::agent {

wire::LevelIs Levels::level_of(VersionNumber version) const {
  wire::LevelIs answer;
  answer.version = version;
  const auto stored = state_.disk.find(version);
  if (stored != state_.disk.end() && stored->second.good()) {
    answer.level = stored->second.level;
    return answer;
  }
  const auto held = state_.memory.find(version);
  if (held != state_.memory.end() && held->second.captured) {
    answer.level = Level::captured;
    if (held->second.failed) {
      answer.code = held->second.failed->code();
      answer.message = held->second.failed->message();
    }
    return answer;
  }
  if (held != state_.memory.end()) return answer;  // being captured
  answer.code = Code::not_found;
  answer.message = fmt::format("version {} of job {} does not exist", version, state_.name);
  if (stored != state_.disk.end()) {
    answer.code = Code::corrupt;
    answer.message = stored->second.damage;
  }
  return answer;
}

void Levels::query(ConnectionId connection, VersionNumber version) {
  state_.outbox.send(connection, level_of(version));
}

void Levels::await(ConnectionId connection, const wire::Await& await) {
  wire::LevelIs now = level_of(await.version);
  if (await.level > Level::local && now.code == Code::ok) {
    now.code = Code::unsupported;
    now.message = fmt::format("level {} is not configured; the highest here is local",
                              level_name(await.level));
  }
  if (now.code != Code::ok || now.level >= await.level) {
    return state_.outbox.send(connection, std::move(now));
  }
  // One that timed out and asks again is still here from the first time.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    return waiter.connection == connection && waiter.await.version == await.version &&
           waiter.await.level == await.level;
  });
  waiters_.push_back({connection, await});
}

void Levels::changed(VersionNumber version) {
  const wire::LevelIs now = level_of(version);
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.await.version != version) return false;
    if (now.code == Code::ok && now.level < waiter.await.level) return false;
    state_.outbox.send(waiter.connection, now);
    return true;
  });
}

void Levels::forget(ConnectionId connection) {
  std::erase_if(waiters_,
                [connection](const Waiter& waiter) { return waiter.connection == connection; });
}

}  // namespace backstay::agent
