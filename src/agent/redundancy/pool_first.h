// Reads of this node's own segments, out of the pool while that has their chunks; all else goes to
// the peer file thread. Of a version that is in the pool a replica, or parity, reads no segment.
//
// The answer comes as that of the peer file thread. Main loop's thread, which copies: a piece is a
// buffer of the pool at most.
#pragma once

#include <cstdint>
#include <span>

#include "agent/disk/peer_files.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class PoolFirst final : public PeerFileLink {
 public:
  // Both must live longer.
  PoolFirst(const JobState& state, PeerFileLink& peer_files)
      : state_(state), peer_files_(peer_files) {}

  void post(PeerFileCommand command) override;

 private:
  // True: piece.memory has what the disk has there.
  bool copy(const ReadPiece& piece);

  const JobState& state_;
  PeerFileLink& peer_files_;
};

}  // namespace backstay::agent
