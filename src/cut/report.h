// What ranks and the coordinator of a cut say to each other (docs/protocol/cut.md). Plain values;
// message.h makes messages of them.
//
// Reports of several ranks are joined into one on their way up the tree of agents: counts and sums
// are added, and each communicator has its least and its greatest clock. So what arrives at the
// coordinator grows with the number of communicators that lie across subtrees, not with ranks.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "wire/cut_message.h"

namespace backstay::cut {

using RankNumber = std::uint32_t;
// Its members compute it alike from its parent, the parent's clock at the call that makes it, and
// the colour. Never used again.
using CommunicatorNumber = std::uint64_t;
using CutNumber = std::uint64_t;
inline constexpr RankNumber any_rank = UINT32_MAX;

// How many collective calls on a communicator were begun, by one rank or by several.
using Clock = wire::CutClock;

// A rank that must go on, and cannot before `peer` has gone on too.
struct Need {
  enum class What : std::uint8_t {
    message,  // the peer sends another one: `count` of its messages have arrived
    taken     // the peer's program takes `count` messages of the waiting one, in all (MPI_Ssend)
  };
  RankNumber waiting = 0;
  RankNumber peer = 0;  // any_rank: whichever sends
  What what = What::message;
  std::uint64_t count = 0;

  auto operator<=>(const Need&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Of one rank, or of all ranks of a subtree.
struct Report {
  CutNumber cut = 0;
  std::uint32_t round = 0;    // the least that was answered
  std::uint32_t ranks = 0;    // that this report speaks of
  std::uint32_t reached = 0;  // of them: begin no collective call before the next round
  std::uint32_t standing = 0;
  std::uint32_t closed = 0;    // take in no more messages
  std::uint32_t saved = 0;     // have their image, and know that all are closed
  std::uint32_t ended = 0;     // processes that have ended or gave the cut up
  std::uint64_t sent = 0;      // messages, since the program's start
  std::uint64_t taken_in = 0;  // those that have left MPI, at their receivers
  VersionNumber newest = 0;    // the highest number of a version that was used; the owner's to say
  std::vector<Clock> clocks;   // by communicator
  std::vector<Need> needs;     // sorted

  bool operator==(const Report&) const = default;
};

// Adds the report of other ranks. Precondition: both are of one cut.
void join(Report& all, const Report& other);

// The last report of each child of a node in the tree of agents, or of each rank of an agent.
class Reports {
 public:
  // Those of an earlier cut make room for those of a later one; late ones are ignored.
  void put(std::uint32_t child, const Report& report);
  // Only a complete one is passed on: see `ranks`.
  Report joined() const;
  std::size_t count() const { return last_.size(); }
  // Null: it has not reported.
  const Report* of(std::uint32_t child) const {
    const auto found = last_.find(child);
    return found == last_.end() ? nullptr : &found->second;
  }

  auto fields() const { return std::tie(cut_, last_); }

 private:
  CutNumber cut_ = 0;
  std::map<std::uint32_t, Report> last_;
};

// From the coordinator to all ranks.
struct Order {
  enum class What : std::uint8_t {
    run_on,   // to the targets, and while others need it; then begin no collective call
    stop,     // stand still and take in what arrives
    save,     // the program is saved as it stands; no more messages are taken in
    go_on,    // no rank takes in messages any more: who has its image goes on
    give_up,  // all goes on as if no cut had been asked for
  };
  using Target = wire::CutTarget;
  CutNumber cut = 0;
  What what = What::run_on;
  std::uint32_t round = 0;
  std::vector<Target> targets;
  std::vector<Need> needs;
  VersionNumber version = 0;  // of save: the number of the version that it is, the same everywhere

  bool operator==(const Order&) const = default;
};

}  // namespace backstay::cut
