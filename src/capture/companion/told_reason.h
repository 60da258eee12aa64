// Why a cut was given up and is tried again: which of these reasons the user is told. Each is told
// once, for whichever rank, also if versions were saved in between: one that comes and goes, as an
// open file does, is not told with each of them. One that passes by itself, such as a rank before
// its MPI_Init, is told if it lasts.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>

namespace backstay::image {

class ToldReason {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds lasts = std::chrono::seconds(10);

  // `passing`: how a reason ends that passes by itself.
  explicit ToldReason(std::string_view passing) : passing_(passing) {}

  // A cut was given up for this. True: the user is to be told.
  [[nodiscard]] bool hear(const std::string& why, Time now);
  // A cut was saved.
  void saved() { heard_.clear(); }

 private:
  std::string_view passing_;
  std::string heard_;  // the last one, since a cut was saved
  Time since_;
  std::set<std::string> told_;  // without their ranks
};

}  // namespace backstay::image
