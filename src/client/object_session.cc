#include "client/object_session.h"

#include <cstdlib>

namespace backstay::client {

Status ObjectSession::checkpoint(const Begin& begin, bool keeps) {
  BACKSTAY_TRY(session_.count(session_.ready(Status())));
  session_.due_->checkpoint_begins();
  const auto base = find_base(keeps);
  if (!base.ok()) return session_.count(base.error());
  base_ = *base;
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

// Collective. An agent that came after the version knows nothing of its chunks. Every node has the
// record of a version before any agent tells it as local (docs/protocol/tree.md).
Result<VersionNumber> ObjectSession::find_base(bool keeps) {
  const Group& group = session_.group_;
  BACKSTAY_ASSIGN(const std::int64_t any_keeps, group.maximum(keeps ? 1 : 0));
  if (any_keeps == 0) return VersionNumber{0};
  Level level = Level::none;
  if (taken_ != 0 && taken_by_ == session_.connected_) (void)session_.test(taken_, level);
  BACKSTAY_ASSIGN(const std::int64_t all_may, group.minimum(level >= Level::local ? 1 : 0));
  return all_may != 0 ? taken_ : 0;
}

Result<VersionNumber> ObjectSession::restart(const BeginTarget& begin,
                                             const MakeReady& make_ready) {
  auto version =
      session_.restart_by([&](bool& touched) { return bring_back(begin, make_ready, touched); });
  taken_ = version.ok() && session_.may_be_base_ ? *version : 0;
  taken_by_ = session_.connected_;
  return version;
}

void ObjectSession::cannot_save(const std::string& why) {
  if (session_.agent_ != nullptr) (void)session_.agent_->send(wire::Refuse{0, Code::again, why});
}

// As `backstay run --from` gives it; 0: the newest.
Result<VersionNumber> ObjectSession::wanted_version() const {
  const char* text = std::getenv("BACKSTAY_FROM");
  VersionNumber wanted = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  BACKSTAY_TRY(session_.group_.broadcast(&wanted, sizeof wanted));
  return wanted;
}

// What a failure leaves behind is the new process's, and ends with it: `touched` says nothing here.
Result<VersionNumber> ObjectSession::bring_back(const BeginTarget& begin,
                                                const MakeReady& make_ready, bool& touched) {
  const int ranks = session_.group_.ranks();
  BACKSTAY_ASSIGN(const VersionNumber wanted, wanted_version());
  const RestartPlan plan{
      .target = [&]() -> ObjectTarget& { return begin(*session_.agent_, session_.origin_); },
      .redistribute = [ranks](VersionNumber version, RunId, std::uint32_t saved_ranks, bool&)
          -> Status { return of_other_ranks(version, saved_ranks, ranks); },
      .make_ready = make_ready,
      .from = wanted,
      .launch = launch_of(session_.hello_.run),
      .names_version = true};
  auto version = session_.bring_back(plan, touched);
  touched = false;
  return version;
}

}  // namespace backstay::client
