#include "capture/companion/full_every.h"

namespace backstay::image {

FullEvery::Cut FullEvery::next(bool has_base) {
  const bool full_is_due = kept_ + 1 >= every_;
  cut_.keeps = watched_ && has_base && !full_is_due;
  const std::uint32_t kept = cut_.keeps ? kept_ + 1 : 0;
  cut_.watches = kept + 1 < every_ && pauses_ == 0;
  return cut_;
}

void FullEvery::taken(std::uint64_t bytes, std::uint64_t kept_bytes) {
  kept_ = kept_bytes > 0 ? kept_ + 1 : 0;
  watched_ = cut_.watches;
  if (pauses_ > 0) --pauses_;
  if (!cut_.keeps || kept_bytes >= bytes / 2) return;
  watched_ = false;
  pauses_ = every_;
}

}  // namespace backstay::image
