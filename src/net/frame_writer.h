// The outgoing half of a connection: small frames that wait, and memory that is being served.
//
// Small frames go first. Data of served memory goes in pieces of data_bytes_max from the memory
// itself; small frames that come meanwhile go between the pieces. Owned by one thread; never
// blocks.
#pragma once

#include <deque>

#include "net/frame.h"

namespace backstay::net {

class FrameWriter {
 public:
  // Copies the body. What it adds to queued_bytes().
  void put(const FrameHeader& header, Bytes body);
  void put(const FrameHeader& header, Bytes body, Bytes more);
  // `memory` must stay until all of it has been written, or the writer is gone.
  void serve(std::uint64_t offer, Bytes memory) { serving_.push_back({offer, memory}); }
  // While on, no further piece of served memory is begun.
  void pause(bool on) { paused_ = on; }

  bool empty() const {
    return pending_at_ == pending_.size() && slice_.empty() && queue_.empty() &&
           (paused_ || serving_.empty());
  }
  std::size_t queued_bytes() const { return queue_.size() + pending_.size() - pending_at_; }

  // Writes until the socket takes no more or about `budget` bytes have gone. The bytes written.
  // Errors: agent_lost (the peer has gone), io.
  Result<std::size_t> write(int socket, std::size_t budget);

 private:
  struct Served {
    std::uint64_t offer;
    Bytes left;
  };
  void refill();
  void written(std::size_t count);

  Buffer queue_;    // frames that no refill has taken yet
  Buffer pending_;  // being written, then
  std::size_t pending_at_ = 0;
  Bytes slice_;  // a piece of served memory
  std::deque<Served> serving_;
  bool paused_ = false;
};

}  // namespace backstay::net
