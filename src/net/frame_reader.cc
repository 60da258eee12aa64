#include "net/frame_reader.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace backstay::net {

Result<std::size_t> FrameReader::read(int socket, FrameSink& sink, std::size_t budget) {
  std::size_t total = 0;
  while (total < budget) {
    auto count = receive(socket);
    if (!count.ok()) {
      if (count.error().code() == Code::again) break;
      return count;
    }
    total += *count;
    BACKSTAY_TRY(parse(sink));
  }
  return total;
}

// Reads data into its place and the bytes after it into the buffer, in one call.
Result<std::size_t> FrameReader::receive(int socket) {
  iovec parts[2] = {{data_left_.data(), data_left_.size()},
                    {buffer_.data() + end_, buffer_.size() - end_}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket, &message, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return Error(Code::agent_lost, "the peer ended the connection");
  if (count < 0 && errno == ECONNRESET)
    return Error(Code::agent_lost, "the peer ended the connection", errno);
  if (count < 0) return errno_error("receive", errno);
  const auto bytes = static_cast<std::size_t>(count);
  const std::size_t direct = std::min(bytes, data_left_.size());
  data_left_ = data_left_.subspan(direct);
  end_ += bytes - direct;
  return bytes;
}

Status FrameReader::take(Bytes bytes, FrameSink& sink) {
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), buffer_.size() - end_);
    std::copy_n(bytes.begin(), part, buffer_.begin() + static_cast<std::ptrdiff_t>(end_));
    end_ += part;
    bytes = bytes.subspan(part);
    BACKSTAY_TRY(parse(sink));
  }
  return {};
}

Status FrameReader::parse(FrameSink& sink) {
  for (;;) {
    if (in_data_) {
      const std::size_t part = std::min(buffered(), data_left_.size());
      std::copy_n(buffer_.data() + begin_, part, data_left_.data());
      begin_ += part;
      data_left_ = data_left_.subspan(part);
      if (!data_left_.empty()) break;
      in_data_ = false;
      BACKSTAY_TRY(sink.data(data_header_));
    }
    if (buffered() < frame_header_bytes) break;
    BACKSTAY_ASSIGN(const FrameHeader header,
                    decode_frame_header(Bytes(buffer_).subspan(begin_, frame_header_bytes)));
    if (header.kind == FrameKind::data) {
      BACKSTAY_TRY(begin_data(header, sink));
      continue;
    }
    const std::size_t whole = frame_header_bytes + header.length;
    if (buffered() < whole) {
      make_room(whole);
      return {};
    }
    const Bytes body = Bytes(buffer_).subspan(begin_ + frame_header_bytes, header.length);
    begin_ += whole;
    BACKSTAY_TRY(sink.frame(header, body));
  }
  make_room(frame_header_bytes);
  return {};
}

Status FrameReader::begin_data(const FrameHeader& header, FrameSink& sink) {
  BACKSTAY_ASSIGN(data_left_, sink.place(header));
  BACKSTAY_CHECK(data_left_.size() == header.length);
  data_header_ = header;
  in_data_ = true;
  begin_ += frame_header_bytes;
  return {};
}

// Moves the rest to the front, so that a frame of this size fits.
void FrameReader::make_room(std::size_t frame_bytes) {
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() < frame_bytes) buffer_.resize(frame_bytes);
}

}  // namespace backstay::net
