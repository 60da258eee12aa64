// A store whose versions name chunks of older ones, as process images and unchanged arrays will: of
// three versions two do, so that chains of needs come about.
//
// It stands between a job and its StoreWorker. Chunks of such a version are put aside, each with a
// copy of its bytes. When the version is sealed, a chunk that the newest recorded version here has
// too, at the same place and with the same checksum, is named where that one has it; the others are
// written. Promises::taking repeats some bytes of the version before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "agent/disk/store.h"
#include "base/aligned_memory.h"

namespace backstay::simulated {

class ReusingStore {
 public:
  using MakeTier = agent::StoreWorker::MakeTier;
  using PostEvent = agent::StoreWorker::PostEvent;
  ReusingStore(const MakeTier& make_tier, PostEvent post_event);

  void handle(agent::Command command);
  bool busy() const { return store_.busy(); }
  void reap(bool wait) { store_.reap(wait); }
  // Versions that were sealed since this was asked last, and that need others.
  std::uint64_t take_needing() { return std::exchange(needing_, 0); }

 private:
  struct Aside {
    agent::WriteChunk chunk;
    AlignedMemory memory;
  };
  void put_aside(const agent::WriteChunk& chunk);
  void seal(agent::SealVersion command);
  std::vector<format::Manifest> newest_recorded();

  Result<std::unique_ptr<tier::Tier>> tier_;
  const PostEvent post_event_;
  bool sealing_ = false;  // the job was told already that the chunks are written
  agent::StoreWorker store_;
  VersionNumber opened_ = 0;  // whose chunks are put aside; 0: none
  std::vector<Aside> aside_;
  std::uint64_t needing_ = 0;
};

}  // namespace backstay::simulated
