// Tells the other nodes of a run what keeps versions from a level on this one, and hears the same of them (lacks.h).
//
// What this node lacks is looked up each time, so that nobody has to say when it changes; only changes are published.
// Main loop's thread.
#pragma once

#include <functional>
#include <vector>

#include "agent/decisions.h"
#include "agent/job_state.h"
#include "agent/lacks.h"

namespace backstay::agent {

class Neighbourhood;

class LackTeller {
 public:
  // `changed(version)`: something about it is known that was not.
  LackTeller(JobState& state, std::function<void(VersionNumber)> changed)
      : state_(state), changed_(std::move(changed)) {}

  // After whatever may have changed something. `neighbourhood` may be null.
  void tell(Decisions& decisions, const Neighbourhood* neighbourhood);
  void learn(const tree::Fact& fact);
  // Another run begins.
  void clear();

 private:
  std::vector<Lack> own(const Decisions& decisions, const Neighbourhood* neighbourhood) const;
  void learn(NodeId node, NodeLacks lacks);

  JobState& state_;
  const std::function<void(VersionNumber)> changed_;
  std::vector<Lack> told_;
};

}  // namespace backstay::agent
