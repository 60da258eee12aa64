// Publishes to the other nodes of a run what keeps versions from a level on this node, and learns
// the same from them (why_not.h answers with them).
//
// It collects this node's blockers at each call, so no room has to report a change; it publishes
// only what has changed. Main loop's thread.
#pragma once

#include <vector>

#include "agent/group/run_membership.h"
#include "agent/version/blockers.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class BlockerPublisher {
 public:
  explicit BlockerPublisher(JobState& state) : state_(state) {}

  // After whatever may have changed something. `run_membership`: of the present run, may be null;
  // `blockers`: what keeps this node's files from their copies.
  void tell(RunMembership* run_membership, std::vector<Blocker> blockers);
  void learn(const tree::Fact& fact);
  // Another run begins.
  void clear() { told_.clear(); }

 private:
  std::vector<Blocker> own(std::vector<Blocker> all) const;

  JobState& state_;
  std::vector<Blocker> told_;
};

}  // namespace backstay::agent
