// Tells the other nodes of a run what keeps versions from a level on this one, and hears the same
// of them (lacks.h).
//
// What this node lacks is looked up each time, so that nobody has to say when it changes; only
// changes are published. Main loop's thread.
#pragma once

#include <vector>

#include "agent/group/fleet.h"
#include "agent/version/job_state.h"
#include "agent/version/lacks.h"

namespace backstay::agent {

class LackTeller {
 public:
  explicit LackTeller(JobState& state) : state_(state) {}

  // After whatever may have changed something. `fleet`: of the present run, may be null; `lacks`:
  // all that the rooms above know of this node.
  void tell(Fleet* fleet, std::vector<Lack> lacks);
  void learn(const tree::Fact& fact);
  // Another run begins.
  void clear();

 private:
  std::vector<Lack> own(std::vector<Lack> all) const;
  void learn(NodeId node, NodeLacks lacks);

  JobState& state_;
  std::vector<Lack> told_;
};

}  // namespace backstay::agent
