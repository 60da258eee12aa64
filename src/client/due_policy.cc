#include "client/due_policy.h"

#include <algorithm>
#include <cmath>

namespace backstay::client {

namespace {
constexpr double retry_after_failure_s = 10;
constexpr double look_every_longest_s = 0.05;
constexpr double look_every_shortest_s = 0.001;
// How much the newest measurement counts: costs drift slowly and single ones are disturbed.
constexpr double newest_share = 0.5;

double seconds(std::uint64_t ns) { return 1e-9 * static_cast<double>(ns); }
}  // namespace

double daly_interval_s(double cost_s, double mtti_s) {
  if (cost_s >= 2 * mtti_s) return mtti_s;
  const double ratio = cost_s / (2 * mtti_s);
  return std::sqrt(2 * cost_s * mtti_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost_s;
}

DuePolicy::DuePolicy(const Config::Checkpoint& config, const Clock& clock)
    : kind_(config.policy == "daly"       ? Kind::daly
            : config.policy == "interval" ? Kind::interval
                                          : Kind::other),
      fixed_interval_s_(config.interval_s),
      mtti_s_(config.mtti_s),
      clock_(clock),
      since_ns_(clock.monotonic_ns()) {}

double DuePolicy::interval_s() const {
  return kind_ == Kind::daly ? daly_interval_s(cost_s_, mtti_s_) : fixed_interval_s_;
}

bool DuePolicy::time_is_up() const {
  if (kind_ == Kind::other) return false;
  return seconds(clock_.monotonic_ns() - since_ns_) >= interval_s();
}

bool DuePolicy::may_try() const { return clock_.monotonic_ns() >= not_before_ns_; }

double DuePolicy::look_every_s() const {
  if (kind_ == Kind::other) return look_every_longest_s;
  return std::clamp(interval_s() / 20, look_every_shortest_s, look_every_longest_s);
}

void DuePolicy::reset() { since_ns_ = clock_.monotonic_ns(); }

void DuePolicy::expect_cost(double cost_s) {
  if (!measured_) cost_s_ = std::max(cost_s, 1e-6);
}

void DuePolicy::captured(std::uint64_t started_ns, std::uint64_t ended_ns) {
  const double cost_s = std::max(seconds(ended_ns - started_ns), 1e-6);
  cost_s_ = measured_ ? newest_share * cost_s + (1 - newest_share) * cost_s_ : cost_s;
  measured_ = true;
  since_ns_ = kind_ == Kind::daly ? ended_ns : started_ns;
}

void DuePolicy::failed() {
  const double pause_s = std::min(interval_s(), retry_after_failure_s);
  not_before_ns_ = clock_.monotonic_ns() + static_cast<std::uint64_t>(pause_s * 1e9);
}

}  // namespace backstay::client
