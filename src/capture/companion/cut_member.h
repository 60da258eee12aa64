// One rank's part in a cut, in its companion (docs/protocol/cut.md): it reads what the program's
// MPI library has counted, owns the state machine `cut::Rank`, and holds the library or lets it go
// on.
//
// No agent, no socket: the owner gives orders in, takes reports out, and calls look() when the
// library has news (CutChannel::wait) and once in a while. Nothing blocks. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "capture/lower/channel.h"
#include "cut/rank.h"

namespace backstay::image {

class CutMember {
 public:
  // Both outlive it. One for each life of the program.
  explicit CutMember(lower::Channel& channel, const Clock& clock = system_clock())
      : channel_(channel), clock_(clock) {}

  // The program stands, and no message is under way: its image is to be taken now, and saved() to
  // be called when that is complete.
  struct TakeImage {};
  struct GoOn {};  // this rank's part has ended
  // The cut cannot be: to be said to the agent, and the cut is over for this rank. The end of a
  // sentence "the program cannot be saved now, because".
  static constexpr const char* has_not_begun =
      "it has not called MPI_Init, or not MPI since it was brought back";
  struct Refused {
    cut::CutNumber cut = 0;
    std::string why;
  };
  using Output = std::variant<cut::Report, TakeImage, GoOn, Refused>;

  void receive(const cut::Order& order);
  void look();
  void saved();
  // The program's process has ended.
  void ended();
  void lose_coordinator();
  void find_coordinator();
  std::vector<Output> take();

  // A cut is under way: look() has to be called.
  bool is_busy() const { return cut_ != 0; }
  // Why it could not be saved now; empty: it could.
  std::string why_not() const;
  // For who asks what a cut waits for: a sentence about the program.
  std::string describe() const;

 private:
  enum class Phase : std::uint8_t { run_on, stop, saving };

  void begin(const cut::Order& order);
  void refuse(const std::string& why);
  void observe();
  bool is_stuck(const cut::Rank::Observed& now);
  void grant(lower::Caller& caller);
  void hand_on();
  void set_order(lower::CutOrder order);
  void wake();
  void let_go();
  bool is_outside() const;

  lower::Channel& channel_;
  const Clock& clock_;
  std::optional<cut::Rank> rank_;
  cut::CutNumber cut_ = 0;  // 0: none
  Phase phase_ = Phase::run_on;
  bool stands_ = false;
  std::optional<cut::Order> closing_;  // to save; the library is still taking something in
  std::vector<Output> out_;
  // Of several threads: the counters as they were seen last, and since when they are so. A program
  // with one thread in MPI always counts as stuck.
  cut::Rank::Observed seen_;
  std::uint64_t seen_at_ = 0;
  bool is_stuck_ = true;
};

}  // namespace backstay::image
