// Which version is to become durable next (drain_coordinator.h). No I/O.
#pragma once

#include "agent/version/job_state.h"

namespace backstay::agent {

// The newest good one on shared storage; 0: none.
VersionNumber newest_durable(const JobState& state);

// Which of the given versions is to be copied next; 0: none. The newest that
// is newer than the newest durable one by durable.every, but first one that is waited for.
// What was given up, and what is older, is not tried again.
class DueVersion {
 public:
  explicit DueVersion(const JobState& state);
  void consider(VersionNumber version, bool waited);
  // What it needs goes first.
  VersionNumber answer() const;

 private:
  VersionNumber first_needed(VersionNumber version) const;

  const JobState& state_;
  const VersionNumber newest_durable_;
  VersionNumber given_up_ = 0;
  VersionNumber due_ = 0;
  VersionNumber waited_ = 0;
};

}  // namespace backstay::agent
