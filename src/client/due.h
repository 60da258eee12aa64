// backstay_due(): the same answer on all ranks at the price of a counter, most of the time.
//
// 1. Every rank counts calls. Up to a call number that all ranks know, the answer is no.
// 2. At that call ("agreement") rank 0 looks at the clock, at requests and at signals, and
//    broadcasts 16 bytes: whether to checkpoint, whether to stop, and after how many calls the next
//    agreement is. It chooses that number from the measured time between calls, so that agreements
//    are about 50 ms apart (less for short intervals), and at every call if calls are slower than
//    that.
// 3. Policy `calls` needs no broadcast for its own answers: the call number is known to all.
// 4. A signal that reached another rank than 0 is sent to the agent at that rank's next agreement,
//    which shows it to rank 0 on the control page.
// Not promised: that a request is seen within 50 ms by a program whose calls suddenly become much
// slower; the distance in calls follows with the next agreement.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/config.h"
#include "client/due_policy.h"
#include "client/group.h"

namespace backstay::client {

// The requests to this rank or, on rank 0, to the job. Behind a seam for tests.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  // Rank 0: requests at the agent so far, and whether the agent was asked to stop the job.
  virtual std::uint32_t requests() = 0;
  virtual bool stop_requested() = 0;
  // Signals of this process that no checkpoint has answered yet.
  virtual bool checkpoint_signalled() = 0;
  virtual bool stop_signalled() = 0;
  virtual void clear_checkpoint_signal() = 0;
  // Passes a signal on to the agent. False: try again later.
  virtual bool forward(bool stop) = 0;
};

class Due {
 public:
  // All must outlive it. Collective use only: the same sequence of calls on all ranks.
  Due(const Config::Checkpoint& config, const Group& group, const Clock& clock,
      RequestSource& source);

  bool call() {
    // No read-modify-write: one thread at a time calls, the atomics only keep misuse harmless.
    const std::uint64_t number = calls_.load(std::memory_order_relaxed) + 1;
    calls_.store(number, std::memory_order_relaxed);
    if (number < next_event_.load(std::memory_order_relaxed)) return false;
    return event(number);
  }
  bool stop_requested() const { return stop_; }

  // Around a checkpoint, on all ranks.
  void checkpoint_begins();
  // `stood_still_ns`: where the program did not stand still to the end.
  void checkpoint_captured(std::optional<std::uint64_t> stood_still_ns = std::nullopt);
  void checkpoint_failed();
  void restarted();
  // Another agent counts requests from 0, so every request that it has counted is open. Not for
  // another connection to the same agent: there a request that came meanwhile is open by itself.
  void agent_changed();
  void expect_cost(double seconds) { policy_.expect_cost(seconds); }

  // For tests: calls until the next agreement.
  std::uint32_t stride() const { return stride_; }

 private:
  struct Agreement {
    std::uint8_t due;
    std::uint8_t stop;
    std::uint16_t zero;
    std::uint32_t stride;
    std::uint64_t call;  // of rank 0: differs where ranks call unequally often
  };
  static_assert(sizeof(Agreement) == 16);

  bool event(std::uint64_t number);
  bool agree(std::uint64_t number);
  Agreement decide(std::uint64_t number);
  std::uint32_t next_stride(std::uint64_t number);
  void forward_signals(const Agreement& agreed);
  // The time of a checkpoint says nothing about the time between calls.
  void restart_clock();

  const Group& group_;
  const Clock& clock_;
  RequestSource& source_;
  DuePolicy policy_;
  const std::uint64_t every_calls_;  // 0: not policy `calls`
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> next_event_{1};
  std::uint64_t next_agreement_ = 1;
  std::uint64_t next_counted_;
  std::uint32_t stride_ = 1;
  bool stop_ = false;
  bool stop_forwarded_ = false;
  // Rank 0 only.
  std::uint64_t last_agreement_call_ = 0;
  std::uint64_t last_agreement_ns_;
  std::uint64_t checkpoint_began_ns_ = 0;
  std::uint32_t answered_requests_ = 0;  // the agent counts from 0 for every run of a job
  std::uint32_t requests_at_begin_ = 0;
  bool stop_answered_ = false;
};

}  // namespace backstay::client
