#include "client/due.h"

#include <algorithm>
#include <limits>

namespace backstay::client {

namespace {
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
// A request is seen after at most this many calls, even if the last ones were quick: calls may
// become slow.
constexpr std::uint32_t stride_max = 1024;
}  // namespace

Due::Due(const Config::Checkpoint& config, const Group& group, const Clock& clock,
         RequestSource& source)
    : group_(group),
      clock_(clock),
      source_(source),
      policy_(config, clock),
      every_calls_(config.policy == "calls" ? config.every_calls : 0),
      next_counted_(every_calls_ == 0 ? never : every_calls_),
      last_agreement_ns_(clock.monotonic_ns()) {}

bool Due::event(std::uint64_t number) {
  bool due = false;
  if (number >= next_counted_) {
    due = true;
    next_counted_ += every_calls_;
  }
  if (number >= next_agreement_) due = agree(number) || due;
  next_event_.store(std::min(next_agreement_, next_counted_), std::memory_order_relaxed);
  return due;
}

bool Due::agree(std::uint64_t number) {
  Agreement agreed{};
  if (group_.rank() == 0) agreed = decide(number);
  if (!group_.broadcast(&agreed, sizeof agreed).ok()) agreed = Agreement{0, 0, 0, stride_max, 0};
  stride_ = std::clamp<std::uint32_t>(agreed.stride, 1, stride_max);
  next_agreement_ = number + stride_;
  stop_ = stop_ || agreed.stop != 0;
  if (group_.rank() != 0) forward_signals(agreed);
  return agreed.due != 0;
}

Due::Agreement Due::decide(std::uint64_t number) {
  Agreement agreed{};
  const bool stop = source_.stop_signalled() || source_.stop_requested();
  const bool asked = source_.requests() != answered_requests_ || source_.checkpoint_signalled();
  const bool wanted = policy_.time_is_up() || asked || (stop && !stop_answered_);
  agreed.due = wanted && policy_.may_try();
  agreed.stop = stop;
  agreed.stride = next_stride(number);
  agreed.call = number;
  return agreed;
}

std::uint32_t Due::next_stride(std::uint64_t number) {
  const std::uint64_t now = clock_.monotonic_ns();
  const double elapsed_s = 1e-9 * static_cast<double>(now - last_agreement_ns_);
  const double calls = static_cast<double>(number - last_agreement_call_);
  last_agreement_ns_ = now;
  last_agreement_call_ = number;
  const double fitting =
      elapsed_s > 0 ? calls * policy_.look_every_s() / elapsed_s : double{stride_max};
  // Grows step by step: one burst of quick calls says little about the next ones.
  const double most = std::min<double>(2.0 * stride_, stride_max);
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, most));
}

void Due::forward_signals(const Agreement& agreed) {
  // The coming checkpoint answers a signal that came in time for it.
  if (source_.checkpoint_signalled() && agreed.due == 0 && source_.forward(false)) {
    source_.clear_checkpoint_signal();
  }
  if (source_.stop_signalled() && agreed.stop == 0 && !stop_forwarded_) {
    stop_forwarded_ = source_.forward(true);
  }
}

void Due::checkpoint_begins() {
  checkpoint_began_ns_ = clock_.monotonic_ns();
  requests_at_begin_ = source_.requests();
}

void Due::checkpoint_captured(std::optional<std::uint64_t> stood_still_ns) {
  answered_requests_ = requests_at_begin_;
  stop_answered_ = stop_answered_ || stop_;
  source_.clear_checkpoint_signal();
  const std::uint64_t ended_ns =
      stood_still_ns ? checkpoint_began_ns_ + *stood_still_ns : clock_.monotonic_ns();
  policy_.captured(checkpoint_began_ns_, ended_ns);
  restart_clock();
}

void Due::checkpoint_failed() {
  policy_.failed();
  restart_clock();
}

void Due::restarted() {
  policy_.reset();
  restart_clock();
}

void Due::agent_changed() { answered_requests_ = 0; }

void Due::restart_clock() {
  last_agreement_ns_ = clock_.monotonic_ns();
  last_agreement_call_ = calls_.load(std::memory_order_relaxed);
}

}  // namespace backstay::client
