// A session's restart: what it brings back, and what it tells of it.
#include <fmt/format.h>

#include <optional>

#include "base/tell.h"
#include "client/redistribution.h"
#include "client/restart_loop.h"
#include "client/session.h"
#include "client/targets.h"

namespace backstay::client {

namespace {

// A program that begins afresh needs no older version, so what is wrong with these is no error to
// it.
bool is_of_versions(Code code) {
  return is_damage(code) || code == Code::lost || code == Code::io || code == Code::mismatch ||
         code == Code::rank_count;
}

// What helps where no version can be brought back. `backstay run` may not have started the program.
Error with_advice(const Error& why, const std::string& job) {
  const bool can_be_read_again = is_damage(why.code()) || why.code() == Code::io;
  if (!can_be_read_again && why.code() != Code::lost) return why;
  return {why.code(),
          fmt::format("{}; {}`backstay run --fresh` starts from the beginning, and so does another "
                      "job name (BACKSTAY_JOB=NAME)",
                      why.message(),
                      can_be_read_again
                          ? fmt::format("`backstay verify {}` reads what is there again, ", job)
                          : "")};
}

}  // namespace

// One outcome for all ranks. A rank that has everything succeeds, even if the agent was lost. But
// if any rank was touched and another one lacks something, all are undefined: then `touched`
// becomes true on all ranks.
Result<VersionNumber> Session::bring_back_regions(bool& touched) {
  std::optional<SessionTarget> target;
  const RestartPlan plan{
      .target = [&]() -> ObjectTarget& { return target.emplace(regions_, files_, origin_); },
      .redistribute =
          [&](VersionNumber version, RunId run, std::uint32_t saved_ranks, bool& in_part) {
            return Redistribution(group_, *agent_, regions_, origin_, version, run, saved_ranks)
                .run(in_part);
          },
      .make_ready = {}};
  return bring_back(plan, touched);
}

Result<VersionNumber> Session::bring_back(const RestartPlan& plan, bool& touched) {
  RestartLoop loop(group_, *agent_, plan);
  const auto found = loop.run(touched);
  if (!found.ok() && origin_.begins_afresh() && is_of_versions(found.error().code())) {
    return Error(Code::none, found.error().message());
  }
  if (!found.ok()) return touched ? found.error() : with_advice(found.error(), config_.job.name);
  const VersionNumber version = *found;
  restarted_ = {version, loop.saved_by()};
  may_be_base_ = loop.may_be_base();
  return version;
}

// The same error on all ranks; `backstay run` asks the agents.
void Session::tell_refusal(const Error& why) {
  const bool refused = why.code() == Code::mismatch || why.code() == Code::rank_count;
  if (!refused || group_.local_rank() != 0 || agent_ == nullptr) return;
  (void)agent_->send(wire::Refuse{0, why.code(), why.message()});
}

void Session::tell_finished(VersionNumber version) {
  if (version_ != 0 || group_.rank() != 0 || !agent_->welcomed().finished) return;
  const std::string& job = config_.job.name;
  tell_user(
      fmt::format("job {0} had finished; it goes on from version {1} (to start afresh: "
                  "`backstay run --fresh`, or `backstay rm {0} --all` before)",
                  job, version));
}

}  // namespace backstay::client
