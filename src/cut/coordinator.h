// The one that leads a cut (docs/protocol/cut.md): it takes the joined reports of all ranks and
// orders what all of them do next.
//
// A pure state machine: no I/O, no clock. The owner's deadline, a lost agent or a lost rank is
// give_up(). One cut at a time; a request during a cut is served by it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cut/report.h"

namespace backstay::cut {

struct Ended {
  CutNumber cut = 0;
  bool saved = false;  // every rank has its image complete. Else nothing of this cut counts
  std::string why;
};
using CoordinatorOutput = std::variant<Order, Ended>;

class Coordinator {
 public:
  // `last`: the number of the last cut that this run may have seen.
  explicit Coordinator(std::uint32_t ranks, CutNumber last = 0) : ranks_(ranks), cut_(last) {}

  void request();
  // The joined reports of all ranks that are known so far.
  void receive(const Report& all);
  void give_up(const std::string& why);
  std::vector<CoordinatorOutput> take();

  bool is_idle() const { return phase_ == Phase::idle; }
  std::uint32_t round() const { return round_; }
  auto fields() const { return std::tie(ranks_, cut_, phase_, round_, targets_, needs_); }

 private:
  enum class Phase : std::uint8_t { idle, run_on, stopping, closing, saving };

  void lead_on(const Report& all);
  bool has_news(const Report& all) const;
  void next_round(const Report& all);
  void order(Order::What what, VersionNumber version = 0);
  void end(bool saved, const std::string& why);

  std::uint32_t ranks_;
  CutNumber cut_;
  Phase phase_ = Phase::idle;
  std::uint32_t round_ = 0;
  std::map<CommunicatorNumber, std::uint64_t> targets_;  // ordered so far
  std::vector<Need> needs_;                              // ordered last
  std::vector<CoordinatorOutput> out_;
};

}  // namespace backstay::cut
