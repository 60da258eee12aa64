// Makes blocks of a stripe, or a part of them, out of others (docs/protocol/parity.md): reads the
// sources from their holders, one after the other, and takes each in as it arrives. The
// arithmetic is done in the peer file thread.
//
// Has a few buffers of its own to read into, so that the owner of the memory for what is made
// never waits for a member that waits for the same; more requests wait in line. Main loop's thread;
// nothing blocks. It may be destroyed at any time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/disk/peer_files.h"
#include "agent/group/callback_guard.h"
#include "agent/group/peers.h"
#include "agent/memory/staging_buffers.h"
#include "protect/combination.h"

namespace backstay::agent {

// Bytes of a block; those beyond its end are zeros.
struct CombinedSource {
  NodeId holder = 0;
  FileOf file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0: all of it is zeros, nothing is read
};

class StripeCoder {
 public:
  static constexpr std::uint32_t at_once = 4;
  using Outs = std::vector<std::span<std::byte>>;
  // `source`: which could not be read, where one could not.
  using Done = std::function<void(const Status&, std::optional<std::size_t> source)>;

  // All must live longer.
  StripeCoder(FileReader& reader, PeerFileLink& peer_files, std::uint32_t buffer_bytes)
      : reader_(reader), peer_files_(peer_files), scratch_(at_once, buffer_bytes) {}
  StripeCoder(const StripeCoder&) = delete;
  StripeCoder& operator=(const StripeCoder&) = delete;

  // `outs` and `sources` in the order that `how` has them. `outs`, all of one length, must stay
  // until `done`, and whatever keeps them has to be kept by `done`, which is called later, never
  // from within the call. At most buffer_bytes each.
  void combine(protect::Combination how, std::vector<CombinedSource> sources, Outs outs, Done done);
  // For an answer that is known already, and must not come from within the call that asked.
  void later(std::function<void()> answer);
  // Calls of combine() whose `done` has not come yet.
  std::size_t under_way() const { return under_way_; }

 private:
  struct Work {
    protect::Combination how;
    std::vector<CombinedSource> sources;
    Outs outs;
    Done done;
    std::size_t next = 0;
    bool empty = true;  // nothing was taken in
    Lease scratch = nullptr;
  };
  using WorkPtr = std::shared_ptr<Work>;

  void go_on(const WorkPtr& work);
  void take_in(const WorkPtr& work);
  static void clear(const Work& work);
  void end(const WorkPtr& work, const Status& status, std::optional<std::size_t> source);

  FileReader& reader_;
  PeerFileLink& peer_files_;
  StagingBuffers scratch_;
  std::deque<WorkPtr> line_;
  std::size_t under_way_ = 0;
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
