#include "net/frame_writer.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace backstay::net {

namespace {

void append(Buffer& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

iovec as_iovec(Bytes bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

void FrameWriter::put(const FrameHeader& header, Bytes body) { put(header, body, {}); }

void FrameWriter::put(const FrameHeader& header, Bytes body, Bytes more) {
  BACKSTAY_CHECK(header.length == body.size() + more.size());
  append(queue_, encode(header));
  append(queue_, body);
  append(queue_, more);
}

void FrameWriter::refill() {
  pending_.swap(queue_);
  queue_.clear();
  pending_at_ = 0;
  if (serving_.empty() || paused_) return;
  Served& first = serving_.front();
  slice_ = first.left.first(std::min(first.left.size(), data_bytes_max));
  append(pending_,
         encode({static_cast<std::uint32_t>(slice_.size()), FrameKind::data, first.offer}));
  first.left = first.left.subspan(slice_.size());
  if (first.left.empty()) serving_.pop_front();
}

void FrameWriter::written(std::size_t count) {
  const std::size_t small = std::min(count, pending_.size() - pending_at_);
  pending_at_ += small;
  slice_ = slice_.subspan(count - small);
}

Result<std::size_t> FrameWriter::write(int socket, std::size_t budget) {
  std::size_t total = 0;
  while (total < budget) {
    if (pending_at_ == pending_.size() && slice_.empty()) refill();
    iovec parts[2] = {as_iovec(Bytes(pending_).subspan(pending_at_)), as_iovec(slice_)};
    if (parts[0].iov_len + parts[1].iov_len == 0) break;
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t count = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      written(static_cast<std::size_t>(count));
      total += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Error(Code::agent_lost, "the peer ended the connection", errno);
    } else if (errno != EINTR) {
      return errno_error("send", errno);
    }
  }
  return total;
}

}  // namespace backstay::net
