// Decides by time whether a checkpoint is due. Rank 0 alone asks; no I/O, no agreement.
//
// interval: checkpoint.interval_s after the start of the last one.
// daly: the optimum of the higher-order model, compute time between checkpoints
//     t = sqrt(2 d M) (1 + 1/3 sqrt(d / 2M) + 1/9 (d / 2M)) - d   for d < 2M, else M
//   (papers: Daly; Oldfield et al., "Modeling the impact of checkpoints on next-generation
//   systems", eq. 3.2) with d the measured blocked time of this run's checkpoints
//   and M = checkpoint.mtti_s.
// calls, request: time does not matter.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/config.h"

namespace backstay::client {

// Seconds of computing between checkpoints that cost `cost_s` each.
double daly_interval_s(double cost_s, double mtti_s);

class DuePolicy {
 public:
  // `clock` must outlive it. Time counts from here.
  DuePolicy(const Config::Checkpoint& config, const Clock& clock);

  bool time_is_up() const;
  // False for a while after a failure.
  bool may_try() const;
  // The longest pause between two calls that does not delay the answer noticeably.
  double look_every_s() const;

  // The interval starts again, as after a restart.
  void reset();
  // Sets the expected cost of the first checkpoint, before any was measured.
  void expect_cost(double seconds);
  void captured(std::uint64_t started_ns, std::uint64_t ended_ns);
  // A checkpoint failed: the next try waits, so that a broken disk is not tried in every step.
  void failed();

  double interval_s() const;

 private:
  enum class Kind { daly, interval, other };
  Kind kind_;
  double fixed_interval_s_;
  double mtti_s_;
  const Clock& clock_;
  double cost_s_ = 0.1;
  bool measured_ = false;
  std::uint64_t since_ns_;  // the interval counts from here
  std::uint64_t not_before_ns_ = 0;
};

}  // namespace backstay::client
