#include "capture/companion/full_every.h"

namespace backstay::image {

FullEvery::Cut FullEvery::next(bool has_base) {
  has_base_ = has_base;
  cut_.keeps = has_base && wants_base();
  const std::uint32_t kept = has_base ? kept_ + 1 : 0;
  cut_.watches = kept + 1 < every_ && pauses_ == 0;
  return cut_;
}

void FullEvery::taken(std::uint64_t bytes, std::uint64_t kept_bytes) {
  kept_ = has_base_ ? kept_ + 1 : 0;
  watched_ = cut_.watches;
  if (pauses_ > 0) --pauses_;
  if (!cut_.keeps || kept_bytes >= bytes / 2) return;
  watched_ = false;
  pauses_ = every_;
}

}  // namespace backstay::image
