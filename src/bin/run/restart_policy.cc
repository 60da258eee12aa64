#include "bin/run/restart_policy.h"

namespace backstay::bin {
namespace {

constexpr unsigned crash_loop_tries = 2;

}  // namespace

RestartPolicy::Decision RestartPolicy::after_failure(VersionNumber newest, bool host_lost,
                                                     bool refused) {
  if (refused) return Decision::refused;
  // The first failure does not count against restarts.
  if (restarts_ > 0) without_progress_ = newest > newest_ || host_lost ? 0 : without_progress_ + 1;
  newest_ = newest;
  if (without_progress_ >= crash_loop_tries) return Decision::crash_loop;
  if (restarts_ == retries_max_) return Decision::no_retries_left;
  ++restarts_;
  return Decision::restart;
}

}  // namespace backstay::bin
