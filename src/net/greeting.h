// A connection before it is one: the handshake on a socket. Owned by one thread; never blocks.
#pragma once

#include "base/fd.h"
#include "net/handshake.h"

namespace backstay::net {

class Greeting {
 public:
  Greeting(Fd socket, Role role, const Secret& secret, const std::string& identity);

  int socket() const { return socket_.get(); }
  bool wants_write() const { return sent_ < to_send_.size(); }

  // Reads and writes as much as the socket allows. Errors: those of Handshake, agent_lost (the peer
  // has gone, or is no agent and said nothing), io.
  Status progress();
  // The peer has proved itself and our answer is on its way.
  bool done() const { return handshake_.wants() == 0 && !wants_write(); }
  const std::string& peer_identity() const { return handshake_.peer_identity(); }
  // The socket, with nothing read beyond the handshake. Once, when done().
  Fd take_socket() { return std::move(socket_); }

 private:
  Status send();
  Status receive(bool* any);

  Fd socket_;
  Handshake handshake_;
  Buffer to_send_;
  std::size_t sent_ = 0;
  Buffer piece_;  // of handshake_.wants() bytes at most
};

}  // namespace backstay::net
