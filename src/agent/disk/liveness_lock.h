// Says to others that a program of the job lives: versions of a program of the same name on other
// nodes, in one durable directory, would be taken for its own. Of captured files it also says that
// this agent still brings them home. It is a lock (job_lock.h), taken with the first version that
// is copied.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/job_lock.h"

namespace backstay::agent {

// One thread: the drain's.
class LivenessLock final {
 public:
  // Errors: busy (a program lives elsewhere), permission, io.
  using Lock = std::function<Result<store::HeldLock>(const std::string& dir)>;
  explicit LivenessLock(const Lock& lock) : lock_(lock) {}

  // Off: what is copied now was left by a program that ended, or another agent of the run may have
  // to go on.
  void set(bool on) {
    on_ = on;
    if (!on) held_.reset();
  }
  // Before anything is written to that directory, which exists.
  Status take(const std::string& dir) {
    if (!on_) return {};
    if (held_ && dir_ == dir && held_->check().ok()) return {};
    held_.reset();
    BACKSTAY_ASSIGN(held_, lock_(dir));
    dir_ = dir;
    return {};
  }

 private:
  const Lock& lock_;
  bool on_ = false;
  std::string dir_;
  store::HeldLock held_;
};

}  // namespace backstay::agent
