#include "client/object_session.h"

#include <fmt/format.h>

namespace backstay::client {

Status ObjectSession::checkpoint(const Begin& begin) {
  BACKSTAY_TRY(session_.count(session_.ready(Status())));
  session_.due_->checkpoint_begins();
  auto source = begin(*session_.agent_, session_.origin_);
  return session_.count(source.ok() ? session_.take_version_of(**source) : Status(source.error()));
}

Result<VersionNumber> ObjectSession::restart(const BeginTarget& begin) {
  return session_.restart_by(
      [&](bool&) { return bring_back(begin(*session_.agent_, session_.origin_)); });
}

void ObjectSession::cannot_save(const std::string& why) {
  if (session_.agent_ != nullptr) (void)session_.agent_->send(wire::Refuse{0, Code::again, why});
}

// What a failure leaves behind is the new process's, and ends with it.
Result<VersionNumber> ObjectSession::bring_back(ObjectTarget& target) {
  Restore restore(*session_.agent_, target);
  const RestoreOutcome outcome = restore.run(wire::Restart{0, 0});
  if (outcome.complete) return outcome.version;
  if (outcome.status.error().code() != Code::rank_count) return outcome.status.error();
  return Error(Code::mismatch, fmt::format("version {} was saved by {} ranks, and this program has "
                                           "one: start under another job name, or with --fresh",
                                           outcome.version, outcome.saved_ranks));
}

}  // namespace backstay::client
