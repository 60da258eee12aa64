// A session's restart: what it brings back, and what it tells of it.
#include <fmt/format.h>

#include <optional>

#include "base/tell.h"
#include "client/agent_versions.h"
#include "client/fetch.h"
#include "client/redistribution.h"
#include "client/restart_loop.h"
#include "client/session.h"
#include "client/targets.h"

namespace backstay::client {

// One outcome for all ranks. A rank that has everything succeeds, even if the agent was lost. But
// if any rank was touched and another one lacks something, all are undefined: then `touched`
// becomes true on all ranks.
Result<VersionNumber> Session::bring_back_regions(bool& touched) {
  std::optional<SessionTarget> target;
  const RestartPlan plan{
      .target = [&]() -> ObjectTarget& { return target.emplace(regions_, files_, origin_); },
      .redistribute =
          [&](VersionNumber version, RunId run, std::uint32_t saved_ranks, bool& in_part) {
            AgentObjects objects(*agent_, version, run);
            return Redistribution(group_, objects, regions_, origin_, version, saved_ranks)
                .run(in_part);
          },
      .make_ready = {}};
  return bring_back(plan, touched);
}

Result<VersionNumber> Session::bring_back(const RestartPlan& plan, bool& touched) {
  AgentVersions versions(group_, *agent_);
  RestartLoop loop(group_, versions, plan);
  const auto found = loop.run(touched);
  if (!found.ok()) return as_told(found.error(), origin_, config_.job.name, touched);
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
  client::tell_finished(config_.job.name, version);
}

}  // namespace backstay::client
