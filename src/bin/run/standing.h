// How long a program stood still for its restarts, and where the time went: a state machine over
// the events of one `backstay run` on this node (docs/format/events.md). Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace backstay::bin {

// Seconds. The parts of one restart begin with the loss of a rank and end with its first computing.
struct RestartTimes {
  double noticing_s = 0;   // until `backstay run` saw the launcher's end
  double launching_s = 0;  // until the first rank connected
  double init_s = 0;       // until the ranks asked for their data
  double reading_s = 0;    // until they had it
  double all_s() const { return noticing_s + launching_s + init_s + reading_s; }
};

class Standing {
 public:
  // Times in ns since 1970; of several failures before the next computing the first counts.
  void lost(std::uint64_t at);
  // `ended`: when `backstay run` saw the end of the attempt before; 0: the log does not say.
  void began(std::uint64_t at, std::uint64_t ended);
  void reads(std::uint64_t at);
  void restored(std::uint64_t at);
  // It computes, or has ended: where it has asked for nothing, from the beginning.
  void computes();
  const RestartTimes& times() const { return times_; }

 private:
  void over(std::uint64_t read, std::uint64_t computing);

  std::optional<std::uint64_t> failed_;  // set: it stands still
  std::uint64_t ended_ = 0, began_ = 0, read_ = 0;
  RestartTimes times_;
};

}  // namespace backstay::bin
