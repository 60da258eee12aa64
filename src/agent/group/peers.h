// The other agents of a run as the parts of this one see them that talk to them
// (docs/protocol/peers.md). PeerConnections is the real one; tests stand in.
//
// Main loop's thread. Nothing blocks; every callback comes later, never from within the call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "agent/version/stored.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/peer_message.h"

namespace backstay::agent {

// Memory that another agent has for us, until we fetch or refuse it.
struct OfferFrom {
  std::uint64_t connection = 0;
  std::uint64_t offer = 0;
};

class Peers {
 public:
  using Ended = std::function<void(Status)>;
  virtual ~Peers() = default;

  virtual NodeId self() const = 0;
  // Members are 0 .. members()-1.
  virtual std::uint32_t members() const = 0;

  // Connects where need be; to ourselves it arrives like any other. What cannot arrive is answered
  // by lost() of the handler of the events.
  virtual void send(NodeId to, wire::peer::Message message) = 0;

  // Gives `memory` to a peer, announced with `ticket`. It must not change until `ended`: ok (the
  // peer has it), again (refused), agent_lost.
  virtual void offer(NodeId to, std::uint64_t ticket, Bytes memory, Ended ended) = 0;
  // Takes what was offered; `memory` is of exactly the offer's size and is not touched until
  // `ended`.
  virtual void fetch(OfferFrom offer, std::span<std::byte> memory, Ended ended) = 0;
  virtual void refuse(OfferFrom offer) = 0;
};

// What comes from them; each part gets what concerns it.
class PeerEvents {
 public:
  virtual ~PeerEvents() = default;
  virtual void message(NodeId from, const wire::peer::Message& message) = 0;
  virtual void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) = 0;
  // There is no connection any more; what was asked of it is not answered.
  virtual void lost(NodeId peer, const Error& why) = 0;
};

// Of the reasons why there is no connection, those that do not pass by themselves: another secret,
// another release, an unknown name.
inline bool does_not_pass(Code code) {
  return code == Code::permission || code == Code::protocol || code == Code::unreachable;
}

// Reads files of nodes from their holders (docs/protocol/peers.md, "Reading"); the holder may
// be ourselves.
class FileReader {
 public:
  using Done = std::function<void(Status)>;
  using DoneManifest = std::function<void(Result<Buffer>)>;
  virtual ~FileReader() = default;

  // memory.size() bytes of the segment from `offset` on; both are multiples of 4096, at most one
  // buffer of the pool. `memory` must stay until `done`, which is called once. Errors: not_found,
  // again (no room there now), agent_lost, io, corrupt (the file is shorter).
  virtual void read(NodeId holder, const FileOf& file, std::uint64_t offset,
                    std::span<std::byte> memory, Done done) = 0;
  // The whole manifest, unchecked. Errors: as read().
  virtual void read_manifest(NodeId holder, const FileOf& file, DoneManifest done) = 0;
  // Attempts to read corrupt data; each may use another source.
  virtual std::size_t tries() const { return 2; }
};

}  // namespace backstay::agent
