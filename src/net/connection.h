// One connection after its handshake: the frames on a socket, and the open offers in each
// direction.
//
// Owned by one thread and by a transport, which reads when the socket is readable, writes while
// wants_write(), asks for pings, and hands over the events of the bulk lane. After an error of one
// of these the transport calls leave(), then end() as soon as released() is true, and drops the
// connection.
#pragma once

#include <map>
#include <vector>

#include "base/fd.h"
#include "net/bulk.h"
#include "net/frame_reader.h"
#include "net/frame_writer.h"
#include "net/transport.h"

namespace backstay::net {

struct ConnectionLimits {
  std::size_t offers_max = 256;
  std::size_t queued_bytes_max = std::size_t{1} << 20;
};

class Connection final : private FrameSink {
 public:
  // `lane` may be null: bulk data then comes over the connection itself. The lane and `events`
  // outlive it.
  Connection(Fd socket, PeerId peer, ConnectionLimits limits, BulkLane* lane,
             std::vector<Event>& events);

  int socket() const { return socket_.get(); }
  bool wants_write() const { return !writer_.empty(); }

  // A bounded amount of work each. Errors: agent_lost, protocol, io; the connection cannot be used
  // any more.
  Status read();
  Status write();
  // A ping, if nothing else is under way.
  void ping();
  // Whether bytes came, or went, since the last time it was asked.
  bool heard() { return std::exchange(heard_, false); }
  bool spoke() { return std::exchange(spoke_, false); }

  // As Transport's.
  Status send(Bytes bytes);
  Result<OfferId> offer(Bytes header, Bytes memory);
  Status fetch(OfferId offer, std::span<std::byte> memory);
  Status refuse(OfferId offer);
  void pause(bool on);

  // Errors: as of read().
  Status bulk(const BulkEvent& event);

  // Nothing moves any more; the peer notices.
  void leave();
  // The lane does not use memory of this connection any more.
  bool released() const { return !lane_ || !lane_->in_use(peer_); }
  // Taken and Fetched for all that is open.
  void end(const Error& why);

 private:
  Result<std::span<std::byte>> place(const FrameHeader& header) override;
  Status data(const FrameHeader& header) override;
  Status frame(const FrameHeader& header, Bytes body) override;
  Status offered(const FrameHeader& header, Bytes body);
  Status attach(Bytes body);
  Status asked(const FrameHeader& header);
  Status serve(OfferId offer, bool by_lane);
  void taken(OfferId offer);
  void fetched(OfferId offer);
  Status writable(std::size_t bytes, std::size_t bytes_max);
  void tell_ready();
  template <typename T>
  void say(T event) {
    events_.emplace_back(std::move(event));
  }

  Fd socket_;
  const PeerId peer_;
  const ConnectionLimits limits_;
  BulkLane* const lane_;
  BulkToken token_{};      // ours
  bool attached_ = false;  // the peer has a lane too
  std::vector<Event>& events_;
  FrameReader reader_;
  FrameWriter writer_;
  bool heard_ = false, spoke_ = false, wants_ready_ = false;
  bool paused_ = false;
  std::vector<OfferId> for_lane_;  // when it is not paused any more

  struct Ours {
    Bytes memory;
    bool asked = false;      // the peer fetches it
    bool has_taken = false;  // the peer says that it has all of it
    bool on_lane = false;    // the lane uses the memory
  };
  OfferId last_ours_ = 0, last_theirs_ = 0;
  std::map<OfferId, Ours> ours_;
  std::map<OfferId, std::uint64_t> theirs_;  // neither fetched nor refused: bytes
  struct Fetching {
    std::span<std::byte> left;  // what is still to come
    bool by_lane = false;       // so that the lane alone may write there
  };
  std::map<OfferId, Fetching> fetching_;
};

}  // namespace backstay::net
