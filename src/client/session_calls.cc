// The calls of a session that are not collective: questions about one version, and which the next
// one is.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "client/fetch.h"
#include "client/region_fetch.h"
#include "client/session.h"
#include "client/stream_session.h"

namespace backstay::client {

namespace {
// How long an agent may take to say why a level was not reached.
constexpr double last_word_s = 1;
}  // namespace

Result<wire::LevelIs> Session::ask_level(const wire::Message& question, VersionNumber version,
                                         Level least, std::uint64_t deadline) {
  if (agent_ == nullptr || !agent_->usable()) {
    return adopt(Error(Code::agent_lost, "the agent is gone")).error();
  }
  const auto is_it = [&](const wire::LevelIs& now) {
    return now.version == version && (now.code != Code::ok || now.level >= least);
  };
  auto answer = ask<wire::LevelIs>(*agent_, question, is_it, deadline);
  if (!answer.ok()) return adopt(answer.error()).error();
  return answer;
}

Status Session::count(const Status& outcome, std::optional<std::uint64_t> stood_still_ns) {
  if (outcome.ok()) {
    due_->checkpoint_captured(stood_still_ns);
  } else {
    due_->checkpoint_failed();
  }
  return outcome;
}

// Only the agent that has passed the order on holds the version of a cut back until it counts.
Status Session::next_version(VersionNumber& version) {
  const VersionNumber ordered = std::exchange(ordered_version_, 0);
  version = ordered == 0 ? newest_used_ + 1 : ordered;
  newest_used_ = std::max(newest_used_, version);
  if (ordered == 0 || ordered_by_ == connected_) return {};
  return Error(Code::agent_lost, "the agent was lost while the ranks agreed on a checkpoint");
}

Status Session::test(VersionNumber version, Level& level) {
  level = Level::none;
  BACKSTAY_ASSIGN(const wire::LevelIs answer,
                  ask_level(wire::Query{version}, version, Level::none, no_deadline));
  level = answer.level;
  if (answer.code != Code::ok) return Error(answer.code, answer.message);
  return {};
}

Status Session::wait(VersionNumber version, Level level, double timeout_s) {
  if (level == Level::protected_ && group_.nodes() == 1) {
    return Error(Code::unsupported, "level protected needs several nodes");
  }
  if (level == Level::durable && config_.durable.dir.empty()) {
    return Error(Code::unsupported, "level durable is not configured; set durable.dir");
  }
  auto answer = ask_level(wire::Await{version, level}, version, level, deadline_in(timeout_s));
  if (!answer.ok() && answer.error().code() == Code::timeout) {
    return waited_in_vain(version, level, timeout_s);
  }
  if (!answer.ok()) return answer.error();
  if (answer->level >= level) return {};
  return Error(answer->code, answer->message);
}

// A missing part may still come while a program waits, so the agent gives reasons only if asked.
Status Session::waited_in_vain(VersionNumber version, Level level, double timeout_s) {
  const auto now = ask_level(wire::Query{version}, version, Level::none, deadline_in(last_word_s));
  if (now.ok() && now->level >= level) return {};  // at the last moment
  std::string why;
  if (now.ok() && now->level != Level::none) {
    why = fmt::format(", it is {}", level_name(now->level));
  }
  if (now.ok() && now->code != Code::ok) why += ": " + now->message;
  return Error(Code::timeout,
               fmt::format("version {} has not reached level {} within {} s; it still may{}",
                           version, level_name(level), timeout_s, why));
}

Result<StreamSession> Session::streams() { return StreamSession(*this); }

Status Session::read_region(VersionNumber version, const std::string& name, void* data,
                            std::size_t bytes) {
  if (agent_ == nullptr || !agent_->usable()) {
    return adopt(Error(Code::agent_lost, "the agent is gone"));
  }
  const RunId run = version == restarted_.first ? restarted_.second : 0;
  Fetch fetch(*agent_, version, hello_.rank, run);
  const Status read = adopt(fetch_region(fetch, name, data, bytes));
  if (read.ok() || read.error().code() != Code::not_found) return read;
  const Status stream = StreamSession(*this).read_whole(version, name, data, bytes);
  const bool none = !stream.ok() && stream.error().code() == Code::not_found;
  return none ? read : stream;
}

}  // namespace backstay::client
