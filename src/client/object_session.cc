#include "client/object_session.h"

namespace backstay::client {

Status ObjectSession::checkpoint(const Begin& begin) {
  BACKSTAY_TRY(session_.count(session_.ready(Status())));
  session_.due_->checkpoint_begins();
  base_ = find_base();
  auto source = begin(*session_.agent_, session_.origin_);
  const Status begun = session_.group_.agree(source.ok() ? Status() : Status(source.error()));
  if (!begun.ok()) return session_.count(begun);
  const Status outcome = session_.take_version_of(**source);
  const auto stop = (*source)->stop();
  const Status taken =
      session_.count(outcome, stop && stop->snapshot ? std::optional(stop->ns) : std::nullopt);
  taken_ = taken.ok() ? session_.version_ : 0;
  taken_by_ = session_.connected_;
  return taken;
}

// An agent that came after it knows nothing of its chunks.
VersionNumber ObjectSession::find_base() {
  const bool known = taken_ != 0 && taken_by_ == session_.connected_;
  if (!known || session_.group_.nodes() > 1) return 0;
  Level level = Level::none;
  (void)session_.test(taken_, level);
  return level >= Level::local ? taken_ : 0;
}

Result<VersionNumber> ObjectSession::restart(const BeginTarget& begin) {
  return session_.restart_by([&](bool& touched) -> Result<VersionNumber> {
    if (session_.group_.nodes() > 1) return bring_back_anywhere(begin, touched);
    return bring_back(begin(*session_.agent_, session_.origin_));
  });
}

void ObjectSession::cannot_save(const std::string& why) {
  if (session_.agent_ != nullptr) (void)session_.agent_->send(wire::Refuse{0, Code::again, why});
}

// What a failure leaves behind is the new process's, and ends with it: `touched` says nothing here.
Result<VersionNumber> ObjectSession::bring_back(ObjectTarget& target) {
  const Group& group = session_.group_;
  Restore restore(*session_.agent_, target);
  const RestoreOutcome outcome = restore.run(wire::Restart{0, 0});
  const Status agreed = group.agree(outcome.complete ? Status() : outcome.status);
  if (agreed.ok()) return outcome.version;
  if (agreed.error().code() != Code::rank_count) return agreed.error();
  return of_other_ranks(outcome.version, outcome.saved_ranks, group.ranks());
}

Result<VersionNumber> ObjectSession::bring_back_anywhere(const BeginTarget& begin, bool& touched) {
  const int ranks = session_.group_.ranks();
  const RestartPlan plan{
      [&]() -> ObjectTarget& { return begin(*session_.agent_, session_.origin_); },
      [ranks](VersionNumber version, RunId, std::uint32_t saved_ranks, bool&) -> Status {
        return of_other_ranks(version, saved_ranks, ranks);
      }};
  auto version = session_.bring_back_anywhere(plan, touched);
  touched = false;
  return version;
}

}  // namespace backstay::client
