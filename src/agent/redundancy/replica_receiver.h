// Keeps copies of other nodes' files on this node: the keeper's side of "Keeping" in
// docs/protocol/peers.md. It pulls manifest and segment from the asker, through the peer file
// thread onto the disk, and answers `kept`.
//
// At most two copies are made at once, those of older versions first; the others wait. Several
// pieces are on their way, as many as there are buffers, which two copies share. The rate limits
// what is pulled. Retention leaves the version alone meanwhile. A copy that fails is taken away
// again, and the asker gets the reason, unless it was lost.
//
// Main loop's thread; nothing blocks. It may be destroyed at any time: what is under way is given
// up.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "agent/disk/peer_files.h"
#include "agent/group/callback_guard.h"
#include "agent/group/peers.h"
#include "agent/memory/staging_buffers.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

// What the parts of protection work with. All must live longer than they.
struct ReplicatorWorld {
  JobState& state;
  Peers& peers;
  FileReader& reader;
  PeerFileLink& peer_files;
  StagingBuffers& keeping;
};

class ReplicaReceiver {
 public:
  // `kept`: this node has the copy that `what` asked for, now or since earlier.
  using Kept = std::function<void(const wire::peer::Keep& what, const HeldFile& held)>;
  // bytes_per_s 0: no limit.
  ReplicaReceiver(ReplicatorWorld world, std::uint64_t bytes_per_s, Kept kept);
  ~ReplicaReceiver();
  ReplicaReceiver(const ReplicaReceiver&) = delete;
  ReplicaReceiver& operator=(const ReplicaReceiver&) = delete;

  // `replace`: what this node has of it is damaged and does not count.
  void keep(NodeId from, const wire::peer::Keep& what, bool replace = false);
  // The version has gone, or goes: its copies are given up.
  void removed(VersionNumber version);

  // Goes on with what may go on. Answers when it wants to be called again (base/clock.h) if nothing
  // happens before.
  std::uint64_t pump();

  // Copies that are asked for and not yet answered.
  std::size_t under_way() const { return copies_.size(); }

 private:
  enum class Step { waiting, manifest, opening, pulling, sealing, ended };
  struct Copy {
    wire::peer::Keep what;
    FileOf file;
    std::deque<NodeId> askers;  // the first is the source
    Step step = Step::waiting;
    std::vector<store::Piece> pieces;
    std::size_t next = 0;
    std::deque<std::size_t> again;             // pieces to be read once more
    std::map<std::size_t, std::size_t> wrong;  // how often each piece was
    std::size_t on_way = 0;                    // pieces being read or written
    std::uint64_t not_before_ns = 0;           // of the pieces in `again`
    std::optional<Error> failed;
    bool source_lost = false;
    bool replace = false;
    VersionPin pin;  // while it is active, like the next
    std::vector<VersionPin> needs_pins = {};
    NodeId source() const { return askers.front(); }
    bool is_active() const { return step != Step::waiting && step != Step::ended; }
    bool has_pieces_left() const { return !again.empty() || next < pieces.size(); }
    bool is_pulled() const { return step == Step::pulling && on_way == 0 && !has_pieces_left(); }
  };

  bool waits_for_needs(const Copy& copy) const;
  bool waits_for_removal(const Copy& copy) const;
  std::vector<Copy*> first_ones();
  void start(Copy& copy);
  void got_manifest(Copy& copy, Result<Buffer> manifest);
  void opened(Copy& copy, Result<std::vector<store::Piece>> pieces);
  std::uint64_t pull(Copy& copy, std::size_t buffers);
  void pull_piece(Copy& copy, std::size_t index, Lease lease);
  void arrived(Copy& copy, std::size_t index, Lease lease, const Status& status);
  void written(Copy& copy, std::size_t index, const Status& status);
  void seal(Copy& copy);
  void sealed(Copy& copy, const Result<HeldFile>& held);
  void fail(Copy& copy, const Error& error);
  void settle(Copy& copy);
  void end(Copy& copy);
  void answer(const Copy& copy, NodeId to, const Status& status);
  // `callback(copy, ...)`, with the copy of that file.
  template <typename Callback>
  auto on_copy(const Copy& copy, Callback callback);

  const ReplicatorWorld world_;
  const std::uint64_t bytes_per_s_;
  const Kept kept_;
  std::map<FileOf, Copy> copies_;
  std::uint64_t next_ns_ = 0;  // when the rate allows the next piece
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
