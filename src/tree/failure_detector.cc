#include "tree/failure_detector.h"

namespace backstay::tree {

void FailureDetector::seen(const NodeSet& present) {
  seen_.add(present);
  NodeSet lost = lost_;
  lost.remove(present);
  set(std::move(lost));
}

void FailureDetector::tick_at_root() {
  if (++ticks_ < grace_ticks_) return;
  ticks_ = 0;
  NodeSet lost = members_;
  lost.remove(std::exchange(seen_, {}));
  set(std::move(lost));
}

void FailureDetector::become_root() {
  ticks_ = 0;
  seen_ = members_;
  seen_.remove(lost_);
}

void FailureDetector::parent_says(NodeSet lost) { set(std::move(lost)); }

void FailureDetector::set(NodeSet lost) {
  if (lost == lost_) return;
  lost_ = std::move(lost);
  changed_ = changes_.next();
}

}  // namespace backstay::tree
