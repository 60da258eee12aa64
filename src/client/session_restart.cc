// A session's restart: on several nodes, and what it tells of it.
#include <fmt/format.h>

#include "base/tell.h"
#include "client/session.h"

namespace backstay::client {

Result<VersionNumber> Session::bring_back_anywhere(const RestartPlan& plan, bool& touched) {
  RestartAnywhere anywhere(group_, *agent_, plan);
  BACKSTAY_ASSIGN(const VersionNumber version, anywhere.run(touched));
  restarted_ = {version, anywhere.saved_by()};
  may_be_base_ = anywhere.may_be_base();
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
