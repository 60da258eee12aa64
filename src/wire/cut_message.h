// The messages about cuts (docs/protocol/cut.md), between ranks and agents and between agents:
// types of both protocols. src/cut says what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace backstay::wire {

struct CutClock {
  std::uint64_t communicator = 0;
  std::uint64_t least = 0;
  std::uint64_t most = 0;

  bool operator==(const CutClock&) const = default;
  // No member has a collective call before it that another one has begun.
  bool is_settled() const { return least == most; }
};
struct CutNeed {  // as cut::Need
  Rank waiting = 0;
  Rank peer = 0;
  std::uint32_t what = 0;
  std::uint64_t count = 0;
};
struct CutTarget {
  std::uint64_t communicator = 0;
  std::uint64_t clock = 0;
  bool operator==(const CutTarget&) const = default;
};

// Up: from ranks to their agent, from agents to their parents.
struct AskCut {
  std::uint64_t after = 0;       // no cut with a number up to this one
  std::uint64_t timeout_ms = 0;  // how long ranks may be kept before the cut is given up
};
struct CutReport {  // as cut::Report
  std::uint64_t cut = 0;
  std::uint32_t round = 0;
  std::uint32_t ranks = 0;
  std::uint32_t reached = 0;
  std::uint32_t standing = 0;
  std::uint32_t closed = 0;
  std::uint32_t saved = 0;
  std::uint32_t ended = 0;
  std::uint64_t sent = 0;
  std::uint64_t taken_in = 0;
  VersionNumber newest = 0;
  std::vector<CutClock> clocks;
  std::vector<CutNeed> needs;
  bool more = false;  // the lists go on in the next message
};
struct RefuseCut {
  std::uint64_t cut = 0;
  Code code = Code::again;  // again: another cut may do better
  std::string message;
};

// Down: from agents to their children, and to ranks.
struct CutOrder {  // as cut::Order
  std::uint64_t cut = 0;
  std::uint32_t what = 0;
  std::uint32_t round = 0;
  VersionNumber version = 0;
  std::vector<CutTarget> targets;
  std::vector<CutNeed> needs;
  bool more = false;
};
struct CutOver {
  std::uint64_t cut = 0;
  Code code = Code::ok;  // again: given up, and asked for again later without a word of anybody
  std::string message;
};

}  // namespace backstay::wire
