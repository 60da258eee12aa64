// The versions that the agent of a rank's node can bring (docs/protocol/agent.md, "On several
// nodes").
#pragma once

#include "client/connection.h"
#include "client/restart_loop.h"

namespace backstay::client {

class AgentVersions final : public SavedVersions {
 public:
  // The connection outlives this.
  AgentVersions(const Group& group, Connection& agent) : group_(group), agent_(agent) {}

  Result<Offer> newest_below(VersionNumber version, RunId run) override {
    BACKSTAY_ASSIGN(const auto found,
                    ask<wire::Candidate>(agent_, wire::Candidates{version, run},
                                         [](const wire::Candidate&) { return true; }));
    return Offer{found.version, found.run, found.saved_ranks, found.code, found.message};
  }
  bool ranks_agree() const override { return group_.nodes() > 1; }
  RestoreOutcome restore(ObjectTarget& target, VersionNumber version, RunId run,
                         const Restore::Agree& agree) override {
    return Restore(agent_, target, agree).run(wire::Restart{version, run});
  }

 private:
  const Group& group_;
  Connection& agent_;
};

}  // namespace backstay::client
