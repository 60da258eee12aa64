#include "meet/link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace backstay::meet {
namespace {

constexpr std::size_t queued_bytes_max = std::size_t{16} << 20;
constexpr std::size_t read_bytes = 64 * 1024;

Error gone() { return {Code::rank_lost, "the connection has ended"}; }

}  // namespace

// Fails on sockets that are not of TCP, which need none of it.
void tune(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

Status Link::send(const Message& message) {
  BACKSTAY_ASSIGN(const Buffer packet, encode(message));
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  if (out_.size() + packet.size() > queued_bytes_max)
    return Error(Code::too_large, "it has not read what was sent to it");
  out_.insert(out_.end(), packet.begin(), packet.end());
  return {};
}

Status Link::flush() {
  while (wants_write()) {
    const ssize_t count = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return gone();
    }
  }
  return {};
}

Status Link::receive(std::vector<Message>& got) {
  std::array<std::byte, read_bytes> piece;
  for (;;) {
    const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return {};
    if (count <= 0) return gone();
    in_.insert(in_.end(), piece.begin(), piece.begin() + count);
    BACKSTAY_TRY(take_whole_ones(got));
  }
}

Status Link::take_whole_ones(std::vector<Message>& got) {
  std::size_t at = 0;
  Status status;
  while (status.ok() && in_.size() - at >= header_bytes) {
    const Bytes rest = Bytes(in_).subspan(at);
    const auto bytes = message_bytes(rest.first(header_bytes));
    status = bytes.ok() ? Status() : Status(bytes.error());
    if (!status.ok() || rest.size() < *bytes) break;
    auto message = decode(rest.first(*bytes));
    status = message.ok() ? Status() : Status(message.error());
    if (message.ok()) got.push_back(std::move(message).value());
    at += *bytes;
  }
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(at));
  return status;
}

}  // namespace backstay::meet
