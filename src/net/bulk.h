// A second way for the payload of fetches, beside the connection: straight from memory to memory,
// by a network that can do that. A transport may own one; connections agree on it after their
// handshake.
//
// Thread: that of the transport; nothing blocks. Peers are named as the transport names them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "net/transport.h"

namespace backstay::net {

// Random bytes that the receiver of a connection chooses. Data for the connection must carry them,
// or it is dropped.
using BulkToken = std::array<std::byte, 16>;

// Something has ended.
struct BulkEvent {
  enum class What { sent, received, failed };
  What what = What::failed;
  PeerId peer = 0;
  OfferId offer = 0;  // 0: failed, the peer as a whole
  Status status;
};

class BulkLane {
 public:
  // Afterwards no memory of a caller is used any more.
  virtual ~BulkLane() = default;

  // For poll(): readable when progress() has something to do.
  virtual int descriptor() const = 0;
  // The address that peers attach() to; at most bulk_address_bytes_max (frame.h).
  virtual Bytes address() const = 0;

  // From now on data may come from the peer, if it names `ours`, and go to it. Errors: invalid (no
  // such address), io.
  virtual Status attach(PeerId peer, const BulkToken& ours, const BulkToken& theirs,
                        Bytes address) = 0;
  // `memory` is free again with the event `sent`; the peer must expect() it.
  virtual void send(PeerId peer, OfferId offer, Bytes memory) = 0;
  // The memory for the data of an offer; free again with the event `received`.
  virtual void expect(PeerId peer, OfferId offer, std::span<std::byte> memory) = 0;
  // Ends everything with this peer. No event of it comes any more, but its memory may still be in
  // use until in_use() is false.
  virtual void detach(PeerId peer) = 0;
  virtual bool in_use(PeerId peer) const = 0;

  // `more`: it is not done, and the descriptor may not say so.
  virtual std::vector<BulkEvent> progress(bool* more) = 0;
};

}  // namespace backstay::net
