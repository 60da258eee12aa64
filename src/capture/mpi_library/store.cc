#include "capture/mpi_library/store.h"

namespace backstay::mpi {

void Store::add(Stored* last) {
  last->next = nullptr;
  (last_ != nullptr ? last_->next : first_) = last;
  last_ = last;
}

Stored* Store::find(const Pattern& pattern) const {
  Stored* one = first_;
  while (one != nullptr && !pattern.fits(*one)) one = one->next;
  return one;
}

void Store::remove(Stored* one) {
  Stored* before = nullptr;
  for (Stored* at = first_; at != one; at = at->next) before = at;
  (before != nullptr ? before->next : first_) = one->next;
  if (last_ == one) last_ = before;
}

}  // namespace backstay::mpi
