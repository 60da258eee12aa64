// Which version is to become durable next (drain_coordinator.h). No I/O.
#pragma once

#include "agent/version/job_state.h"

namespace backstay::agent {

// The newest good one on shared storage; 0: none.
VersionNumber newest_durable(const JobState& state);

// Which of the given versions is to become durable next: the newest that is newer than the newest
// durable one by durable.every, but first one that is waited for. What was given up, and what is
// older, is not tried again, unless a newer one needs it. What was copied before its turn because a
// newer one needs it does not count until that one is durable.
//
// Each version of captured files holds other files. A version whose files are not at home is due
// whatever is durable, and the oldest comes first: if the host is lost, these files are nowhere
// else. Only a version that is waited for comes before it.
class DueVersion {
 public:
  // `target`: of the last answer. It stays due once something that it needs is durable.
  DueVersion(const JobState& state, VersionNumber target);
  void consider(VersionNumber version, bool waited);
  // 0: none.
  VersionNumber target() const {
    if (waited_ != 0) return waited_;
    return not_home_ != 0 ? not_home_ : due_;
  }
  // What is to be copied now: the target, or something that it needs. 0: nothing.
  VersionNumber answer() const;

 private:
  VersionNumber first_needed(VersionNumber version) const;

  const JobState& state_;
  const VersionNumber newest_durable_;
  const VersionNumber target_;
  VersionNumber given_up_ = 0;
  VersionNumber due_ = 0;
  VersionNumber waited_ = 0;
  VersionNumber not_home_ = 0;
};

}  // namespace backstay::agent
