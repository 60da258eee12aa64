// When a cut begins, how long it may take, and when it is tried again (docs/protocol/cut.md, "One
// cut"): the owner of the coordinator, in the agent of node 0.
//
// A pure state machine: times are given to it. One cut at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cut/coordinator.h"
#include "wire/cut_message.h"

namespace backstay::agent {

inline constexpr std::uint64_t never_ns = UINT64_MAX;

class CutLead {
 public:
  static constexpr std::uint64_t second_ns = 1'000'000'000;
  static constexpr std::uint64_t default_timeout_ns = 60 * second_ns;
  // How long the deadline waits for the name of who is late.
  static constexpr std::uint64_t answer_ns = 2 * second_ns;
  static constexpr std::uint64_t pause_max_ns = 600 * second_ns;

  // `last`: this and lower numbers of cuts may have been used.
  CutLead(std::uint32_t ranks, cut::CutNumber last) : ranks_(ranks), last_(last) {}

  void ask(const wire::AskCut& ask, std::uint64_t now_ns);
  // An agent or a rank cannot go on with it, or names who is late.
  void refuse(cut::CutNumber cut, Code code, const std::string& why, std::uint64_t now_ns);
  // The joined reports of all ranks that are known so far.
  void receive(const cut::Report& all, std::uint64_t now_ns);
  // What may happen by time alone. `missing`: why no cut can begin at the moment; "": it can.
  void pump(const std::string& missing, std::uint64_t now_ns);
  // When pump() wants to be called again.
  std::uint64_t wakes_at_ns() const;

  // To ask the agents for the name of a rank that the cut waits for.
  struct Who {
    cut::CutNumber cut = 0;
    std::uint32_t seconds = 0;
  };
  struct Over {
    wire::CutOver message;
    double seconds = 0;
  };
  using Output = std::variant<cut::Order, Who, Over>;
  std::vector<Output> take();

  bool busy() const { return cut_.has_value(); }
  bool wanted() const { return wanted_; }

 private:
  void begin(std::uint64_t now_ns);
  void give_up(Code code, const std::string& why, std::uint64_t now_ns);
  void collect(std::uint64_t now_ns);
  // How long a cut that is wanted waits for agents that are missing before it says so.
  std::uint64_t missing_ns() const { return std::min(timeout_ns_, 10 * second_ns); }
  void end(Code code, const std::string& why, std::uint64_t now_ns);

  const std::uint32_t ranks_;
  cut::CutNumber last_;  // begun last
  std::optional<cut::Coordinator> cut_;
  bool wanted_ = false;
  bool saves_ = false;  // who asks now gets the next one
  bool asked_again_ = false;
  std::uint64_t timeout_ns_ = default_timeout_ns;
  std::uint64_t began_ns_ = 0;      // of the cut; else since when it is wanted
  std::uint64_t deadline_ns_ = 0;   // of its way to go on
  std::uint64_t answer_by_ns_ = 0;  // not 0: who is late was asked
  std::uint64_t pumped_ns_ = 0;
  std::uint64_t not_before_ns_ = 0;  // the pause before the next try
  std::uint32_t failures_ = 0;       // in a row
  Code code_ = Code::again;          // of the present end
  std::vector<Output> out_;
};

}  // namespace backstay::agent
