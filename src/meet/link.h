// One connection of a meeting after its handshake: messages on a socket. Owned by one thread; never
// blocks.
#pragma once

#include <vector>

#include "base/fd.h"
#include "meet/message.h"

namespace backstay::meet {

// What both sides ask of the kernel: small messages at once, and a host that dies in silence is
// noticed (docs/protocol/meeting.md, "What ends it").
void tune(int socket);

class Link {
 public:
  explicit Link(Fd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }
  bool wants_write() const { return sent_ < out_.size(); }

  // Queues it. Errors: too_large (the message, or what waits for a peer that does not read).
  Status send(const Message& message);
  // Writes as much as the socket takes. Errors: rank_lost (the peer has gone), io.
  Status flush();
  // Adds the messages that are here to `got`; those before an error are in it too. Errors: as
  // flush(), protocol, invalid.
  Status receive(std::vector<Message>& got);

 private:
  Status take_whole_ones(std::vector<Message>& got);

  Fd socket_;
  Buffer out_;
  std::size_t sent_ = 0;
  Buffer in_;
};

}  // namespace backstay::meet
