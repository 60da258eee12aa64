// A session's checkpoints and restarts of an object that is not made of this process's regions: the
// whole process of another program, for one. The session must outlive it; its other functions are
// used as always.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/session.h"

namespace backstay::client {

class ObjectSession {
 public:
  explicit ObjectSession(Session& session) : session_(session) {}

  // Collective. `begin` is called once all agents are there; the gravest error of any rank ends the
  // checkpoint on all, and no agent hears of it. Errors: as Session::checkpoint(), and of `begin`.
  // `keeps`: this rank would keep chunks of the last version, if it may.
  using Begin = std::function<Result<std::unique_ptr<ObjectSource>>(Connection&, const Origin&)>;
  Status checkpoint(const Begin& begin, bool keeps = false);

  // Inside of `begin`: the version of which chunks may be kept, the same on all ranks; 0: none. Not
  // 0, each source tells it, also one that keeps nothing. It is the last one that was begun, or
  // brought back where all agents can keep chunks of it; if each rank's agent says that it is
  // local, and if any rank would keep some of it.
  VersionNumber base() const { return base_; }
  // After a checkpoint or restart: its version may be the next base(), once it is local.
  bool may_keep() const { return taken_ != 0; }

  // Collective. The newest version, or what `backstay run --from` asks for (rank 0's
  // BACKSTAY_FROM). `begin` is called once for each try; what it made before is not used any more.
  // The user is told from which version the program goes on. A version that a target refuses with
  // another code than mismatch and none is skipped, and the user is told; so is a damaged one.
  // `make_ready` is called once all ranks have all of a version, and nothing is used of it yet;
  // `may_keep`: as may_keep() will be, the same on all ranks. What fails then, on any rank, is
  // skipped on all as if a target had refused it. Errors: as Session::restart(); mismatch (another
  // number of ranks saved the version).
  using BeginTarget = std::function<ObjectTarget&(Connection&, const Origin&)>;
  using MakeReady = std::function<Status(bool may_keep)>;
  Result<VersionNumber> restart(const BeginTarget& begin, const MakeReady& make_ready = {});

  // Null: it is gone, and the next collective call finds another one.
  Connection* agent() const { return session_.agent_.get(); }

  // Tells the agent, and so `backstay run`, that another try would end the same way.
  // `why`: its code is mismatch, else nothing is told.
  void refuse(const Error& why) { session_.tell_refusal(why); }
  // Tells the agent, and so `backstay status`, why the program cannot be saved now.
  void cannot_save(const std::string& why);

 private:
  Result<VersionNumber> find_base(bool keeps);
  Result<VersionNumber> wanted_version() const;
  Result<VersionNumber> bring_back(const BeginTarget& begin, const MakeReady& make_ready,
                                   bool& touched);
  Session& session_;
  VersionNumber base_ = 0;
  VersionNumber taken_ = 0;     // the last one that was begun or brought back; 0: it is no base
  std::uint64_t taken_by_ = 0;  // which of the agents that the session has had
};

}  // namespace backstay::client
