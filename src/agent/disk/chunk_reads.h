// The chunks that the store reads for restarts, several requests to the disk in flight.
//
// What arrived is posted when there is nothing left to hand to the disk, or before sleeping.
// Posting wakes the thread that serves the ranks, and then the ranks; on a node with few cores they
// run before us, and the disk must not stand idle meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "agent/disk/store.h"

namespace backstay::agent {

class ChunkReads {
 public:
  explicit ChunkReads(std::function<void(Event)> post_event) : post_event_(std::move(post_event)) {}

  // `segment`: run 0: of the version itself.
  bool has(const FileOf& segment) const { return reading_ && reading_->segment == segment; }
  // Precondition: finish()ed.
  void begin(const FileOf& segment, std::unique_ptr<tier::Reader> reader);
  // Precondition: has() its segment. Waits where the reader is full.
  void read(const ReadChunk& command);
  // Requests are in flight, or what arrived is not posted.
  bool open() const;
  void reap(bool wait);
  void finish();

 private:
  struct Reading {
    FileOf segment;
    std::unique_ptr<tier::Reader> reader = {};
    std::uint64_t next_tag = 0;
    std::unordered_map<std::uint64_t, ChunkRead> reads = {};  // by tag
    std::vector<ChunkRead> arrived = {};                      // not posted yet
  };
  void collect(bool wait);
  void post_arrived();

  const std::function<void(Event)> post_event_;
  std::optional<Reading> reading_;
};

}  // namespace backstay::agent
