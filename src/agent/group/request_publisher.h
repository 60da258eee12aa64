// Requests to checkpoint that come on one node of a run, for rank 0, which alone looks at them and
// reads its own node's control page (docs/protocol/tree.md, "Requests"): each agent without rank 0
// publishes that it was asked, each agent that hears so asks on its own page. Main loop's thread.
#pragma once

#include "agent/group/run_membership.h"
#include "agent/memory/control_page.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class RequestPublisher {
 public:
  RequestPublisher(const JobState& state, ControlPage& page) : state_(state), page_(page) {}

  // `backstay checkpoint`, or a signal at one of this node's ranks.
  void request(bool stop);
  // Called after each event: a request that came before the other agents were known is published
  // then.
  void tell(RunMembership* run_membership);
  void learn(const tree::Fact& fact);
  // Another run begins.
  void clear();

 private:
  const JobState& state_;
  ControlPage& page_;
  bool unreported_ = false;
  bool stop_ = false;
};

}  // namespace backstay::agent
