// Decides whether `backstay run` tries again. No I/O: tested alone.
#pragma once

#include "base/ids.h"

namespace backstay::bin {

class RestartPolicy {
 public:
  explicit RestartPolicy(unsigned retries_max) : retries_max_(retries_max) {}

  enum class Decision { restart, no_retries_left, crash_loop, refused };

  // Called after a failure. `newest` is the newest version that could be restarted now. Two
  // restarts in a row that failed before they made a new version are a crash loop: more restarts
  // will not help. A failure that a lost host explains does not count against the program.
  // `refused`: the ranks refused the saved version, and would refuse it again.
  Decision after_failure(VersionNumber newest, bool host_lost = false, bool refused = false);
  unsigned restarts() const { return restarts_; }

 private:
  const unsigned retries_max_;
  unsigned restarts_ = 0;
  unsigned without_progress_ = 0;
  VersionNumber newest_ = 0;
};

}  // namespace backstay::bin
