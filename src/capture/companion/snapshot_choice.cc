#include "capture/companion/snapshot_choice.h"

#include <algorithm>
#include <cmath>

namespace backstay::image {

namespace {

// A stop that is shorter is not worth a try.
constexpr double least_s = 0.02;
// A program changes: what a snapshot costs is tried again behind so many copies, or behind more
// where it was dear: a try costs at most a tenth of the copies before it.
constexpr double copies_between_tries = 16;
constexpr double most_copies_between_tries = 1'000'000;
constexpr double share_of_tries = 0.1;

std::uint32_t copies_until_try(double snapshot_s, double copy_s) {
  const double worth = copy_s > 0 ? std::ceil(snapshot_s / (share_of_tries * copy_s)) : 0;
  return static_cast<std::uint32_t>(
      std::clamp(worth, copies_between_tries, most_copies_between_tries));
}

}  // namespace

bool SnapshotChoice::forks(std::uint64_t bytes, std::uint64_t room) const {
  if (never_ || copies_due_ > 0) return false;
  if (always_) return true;
  if (bytes > room) return true;
  const double copy_s = copy_s_per_byte_ * static_cast<double>(bytes);
  if (copy_s < least_s) return false;
  return forgotten_in_ == 0 || copy_s > fork_s_;
}

void SnapshotChoice::copied(std::uint64_t bytes, double seconds) {
  if (forgotten_in_ > 0) --forgotten_in_;
  if (copies_due_ > 0) --copies_due_;
  if (bytes == 0) return;
  copy_s_ = seconds;
  copy_s_per_byte_ = seconds / static_cast<double>(bytes);
}

void SnapshotChoice::forked(double seconds, double slow_down_s) {
  fork_s_ = seconds + slow_down_s;
  forgotten_in_ = copies_until_try(fork_s_, copy_s_);
}

void SnapshotChoice::killed() {
  copies_due_ = always_ ? 1 : static_cast<std::uint32_t>(copies_between_tries);
}

}  // namespace backstay::image
