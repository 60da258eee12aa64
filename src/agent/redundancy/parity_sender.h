// Parity that this node makes for other members of its group (docs/protocol/parity.md, "Encoding"):
// each slice waits here for its member's `get`, or the `get` for the slice.
//
// No member waits without end. A slice that is not asked for in time is dropped, and that member is
// answered `no` from then on, so that it makes its blocks by itself; so is who asks for what is not
// about to be made.
//
// Main loop's thread; nothing blocks. It may be destroyed at any time: what peers are fetching
// stays until they have it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "agent/group/callback_guard.h"
#include "agent/group/peers.h"
#include "agent/memory/staging_buffers.h"
#include "base/clock.h"

namespace backstay::agent {

class ParitySender {
 public:
  static constexpr std::uint64_t asked_patience_ns = 2'000'000'000;
  static constexpr std::size_t asked_max = 1024;  // that wait at once

  // A slice of the parity file of member `to`.
  struct Slice {
    VersionNumber version = 0;
    NodeId to = 0;
    std::uint64_t offset = 0;                        // in that file
    auto operator<=>(const Slice&) const = default;  // NOLINT: <=> is no 0
  };

  // Both must live longer. `patience_ns`: how long a slice waits for who is to ask for it.
  ParitySender(Peers& peers, const Clock& clock, std::uint64_t patience_ns)
      : peers_(peers), clock_(clock), patience_ns_(patience_ns) {}

  // Encoding of the version starts or restarts; pending requests stay queued.
  void begun(VersionNumber version);
  // The slice is there; `lease` is what its memory belongs to.
  void made(const Slice& slice, Lease lease, Bytes memory);
  // Its member asks for it. `may_come`: it is being made, or may be later.
  void asked(const Slice& slice, std::uint64_t ticket, std::uint64_t bytes, bool may_come);
  // No more of that version is made now. What is there may still be asked for.
  void ended(VersionNumber version);
  // Nothing is left of the version.
  void forget(VersionNumber version);
  void lost(NodeId peer);

  // `working`: the version that is being made now. Answers when it wants to be called again
  // (base/clock.h).
  std::uint64_t pump(std::optional<VersionNumber> working);

 private:
  struct Waiting {  // for who asks
    Lease lease;
    Bytes memory;
    std::uint64_t since_ns = 0;
  };
  struct Asked {
    std::uint64_t ticket = 0;
    std::uint64_t bytes = 0;
    std::uint64_t since_ns = 0;
  };
  bool is_out(const Slice& slice) const { return out_.contains({slice.version, slice.to}); }
  void put_out(const Slice& slice);
  void give(const Slice& slice, const Asked& asked, Waiting waiting);
  void refuse(NodeId to, std::uint64_t ticket, Code code, const char* why);
  template <typename Condition>
  void refuse_if(Condition condition, const char* why);

  Peers& peers_;
  const Clock& clock_;
  const std::uint64_t patience_ns_;
  std::map<Slice, Waiting> waiting_;
  std::map<Slice, Asked> asked_;
  std::set<std::pair<VersionNumber, NodeId>> out_;  // who did not ask in time
  std::set<NodeId> away_;                           // lost, and has not asked since
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
