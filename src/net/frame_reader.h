// The incoming half of a connection: bytes of a socket to frames. Data goes straight into the
// memory that the sink names; everything else is handed over whole. Owned by one thread; never
// blocks.
//
// Memory: one buffer, which grows to the largest frame seen and at most to that of the largest
// message.
#pragma once

#include "net/frame.h"

namespace backstay::net {

// Receives the frames. An error of the sink ends the reading and is returned by FrameReader::read.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // The memory for the body of a data frame: header.length bytes, valid until data() or the end.
  virtual Result<std::span<std::byte>> place(const FrameHeader& header) = 0;
  // The body has arrived there.
  virtual Status data(const FrameHeader& header) = 0;
  // Any other frame. `body` is a view that ends with the call.
  virtual Status frame(const FrameHeader& header, Bytes body) = 0;
};

class FrameReader {
 public:
  // Reads until nothing is left or about `budget` bytes came. Returns the bytes read. Errors:
  // agent_lost (the peer has gone; what came before it was handed over), io, the sink's, and
  // protocol.
  Result<std::size_t> read(int socket, FrameSink& sink, std::size_t budget);
  // The same for bytes that came in another way.
  Status take(Bytes bytes, FrameSink& sink);

 private:
  Result<std::size_t> receive(int socket);
  Status parse(FrameSink& sink);
  Status begin_data(const FrameHeader& header, FrameSink& sink);
  void make_room(std::size_t frame_bytes);
  std::size_t buffered() const { return end_ - begin_; }

  Buffer buffer_ = Buffer(std::size_t{16} << 10);
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer and not handed over
  bool in_data_ = false;
  FrameHeader data_header_;
  std::span<std::byte> data_left_;
};

}  // namespace backstay::net
