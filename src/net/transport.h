// Messages and bulk data between the agents of a job. docs/protocol/network.md says what passes on
// the wire; tests/conformance/net_conformance.h what every implementation does.
//
// Thread: a Transport and all its peers belong to one thread. Nothing blocks. What the network does
// shows only in the events of progress(), which the owner calls whenever the descriptor is readable
// and never later than a fifth of `dead_after_s` after the last call: it also keeps us alive for
// our peers.
//
// Promised, for each peer:
//  - connect() and every peer that connects to us end in exactly one Closed, the peer's last event.
//    Between Connected and Closed its messages and offers arrive whole, once, in the order in which
//    they were sent, messages and offers in one order. What a Closed cuts off is the end of it.
//  - every offer() that succeeded ends in one Taken and every fetch() in one Fetched, before
//    Closed.
//  - a peer of which nothing was heard for `dead_after_s` is closed, whatever its host, its process
//    or the network do. An endpoint that did not call progress() for half of that time
//    restarts the count: it may itself have caused the silence.
//  - only a peer that knows the job's key reaches Connected.
//
// Not promised: that messages sent before a Closed have arrived, or were acted upon (callers answer
// each other); that both sides see Closed at the same time; one connection only between two agents
// (two connections are two peers); secrecy, or integrity against an attacker who can change packets
// under way.
//
// Implementations: tcp.h, loopback.h (in one process, with the clock of a test), lossy.h (a wrapper
// that simulates the faults of a network).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace backstay::net {

// One connection, as one transport names it; never used again by that transport. 0: no peer.
using PeerId = std::uint64_t;
// An offer of one connection, numbered by the side that offers: from 1, growing.
using OfferId = std::uint64_t;

// Properties and limits of a transport.
struct Facts {
  std::string kind;     // "tcp", ...
  std::string address;  // for connect() of others
  // For poll(): readable when progress() has something to do, also when only time has passed.
  int descriptor = -1;
  std::size_t message_bytes_max = 0;
  std::size_t header_bytes_max = 0;   // of an offer
  std::uint64_t offer_bytes_max = 0;  // memory of one offer
  std::size_t offers_max = 0;         // not yet ended, each peer, each direction
  std::size_t queued_bytes_max = 0;   // messages and headers that wait to be sent, each peer
  double dead_after_s = 0;
};

// The other side has proved that it knows the job's key and has named itself.
struct Connected {
  PeerId peer = 0;
  std::string identity;
};
struct Message {
  PeerId peer = 0;
  Buffer bytes;
};
// The peer has memory for us. It stays there until we fetch or refuse.
struct Offered {
  PeerId peer = 0;
  OfferId offer = 0;
  Buffer header;
  std::uint64_t bytes = 0;
};
// The end of our fetch(): the memory is ours again, and filled if the status is ok. If not, its
// content is undefined.
struct Fetched {
  PeerId peer = 0;
  OfferId offer = 0;
  Status status;
};
// The end of our offer(): the memory is ours again. ok: the peer has all of it. Errors: again
// (refused: the peer has no room now), or those of Closed.
struct Taken {
  PeerId peer = 0;
  OfferId offer = 0;
  Status status;
};
// After a send() or offer() that was answered with Code::again: try once more.
struct Ready {
  PeerId peer = 0;
};
// Status: ok (we called close()), agent_lost (the peer closed, died or was not to be reached; the
// message says which), permission (wrong key), protocol (another version, or nothing that we
// understand), not_found (its name does not resolve), invalid (no address), io.
struct Closed {
  PeerId peer = 0;
  Status status;
};
using Event = std::variant<Connected, Message, Offered, Fetched, Taken, Ready, Closed>;

class Transport {
 public:
  // Every connection ends; no event comes any more; no memory of an offer or fetch is used any
  // more.
  virtual ~Transport() = default;

  virtual const Facts& facts() const = 0;

  // Does what can be done without waiting, and returns what has happened. A call does a bounded
  // amount of work; the descriptor stays readable if there is more.
  virtual std::vector<Event> progress() = 0;

  // Begins to connect to the facts().address of another transport. The answer is Connected, or
  // Closed within `dead_after_s` (a slow name service may take longer).
  virtual PeerId connect(const std::string& address) = 0;

  // Sends a message; `bytes` is copied. Errors, with nothing sent: again (the queue to this peer is
  // full; Ready follows), too_large, state (not connected yet), agent_lost (no such peer any more).
  virtual Status send(PeerId peer, Bytes bytes) = 0;

  // Announces `memory` to the peer; not a byte of it moves before the peer fetches. `header` is
  // copied. `memory` must neither change nor go until Taken. Errors: as send(), and invalid (empty
  // memory). again also if `offers_max` have not ended yet.
  virtual Result<OfferId> offer(PeerId peer, Bytes header, Bytes memory) = 0;

  // Moves what was Offered into `memory`, which must be of exactly that size and must not be
  // touched until Fetched. Offers may be fetched in any order, several at once. Errors: invalid
  // (size), not_found (no such offer, or fetched or refused already), agent_lost.
  virtual Status fetch(PeerId peer, OfferId offer, std::span<std::byte> memory) = 0;

  // Turns down what was Offered. Errors: not_found, agent_lost.
  virtual Status refuse(PeerId peer, OfferId offer) = 0;

  // While on, fetches of our memory wait, at the latest after the piece that is being sent;
  // messages pass. For a moment in which this node's processors and memory are needed for other
  // work. Holds for all peers.
  virtual void pause(bool on) = 0;

  // Ends the connection. Messages of ours that still wait are dropped, and none of the peer's comes
  // any more. What was offered or fetched ends with Code::state, then Closed comes, at a later
  // progress(). Nothing happens if the peer has gone already.
  virtual void close(PeerId peer) = 0;
};

// The peer that an event is about.
inline PeerId peer_of(const Event& event) {
  return std::visit([](const auto& one) { return one.peer; }, event);
}

}  // namespace backstay::net
