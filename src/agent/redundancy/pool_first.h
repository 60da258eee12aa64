// Reads of this node's own segments come out of the pool while that has their chunks: of a version
// that is in the pool a replica, or parity, reads no segment. Main loop's thread.
#pragma once

#include <utility>

#include "agent/disk/peer_files.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class PoolFirst final : public PeerFileLink {
 public:
  // Both must live longer.
  PoolFirst(const JobState& state, PeerFileLink& peer_files)
      : state_(state), peer_files_(peer_files) {}

  void post(PeerFileCommand command) override {
    if (auto* piece = std::get_if<ReadPiece>(&command)) piece->pooled = state_.pooled(piece->file);
    peer_files_.post(std::move(command));
  }

 private:
  const JobState& state_;
  PeerFileLink& peer_files_;
};

}  // namespace backstay::agent
