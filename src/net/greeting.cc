#include "net/greeting.h"

#include <sys/socket.h>

#include <cerrno>

namespace backstay::net {

namespace {

Nonce fresh_nonce() {
  Nonce nonce;
  fill_random(nonce.data(), nonce.size());
  return nonce;
}

Error ended() {
  return Error(Code::agent_lost, "it ended the connection before it had proved itself");
}

}  // namespace

Greeting::Greeting(Fd socket, Role role, const Secret& secret, const std::string& identity)
    : socket_(std::move(socket)),
      handshake_(role, secret, identity, fresh_nonce()),
      to_send_(handshake_.first()) {}

Status Greeting::progress() {
  for (bool any = true; any;) {
    BACKSTAY_TRY(send());
    any = false;
    if (handshake_.wants() > 0) BACKSTAY_TRY(receive(&any));
  }
  return {};
}

Status Greeting::send() {
  while (wants_write()) {
    const ssize_t count = ::send(socket_.get(), to_send_.data() + sent_, to_send_.size() - sent_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return ended();
    } else if (errno != EINTR) {
      return errno_error("send", errno);
    }
  }
  return {};
}

// One piece at most. `any`: it was whole, and there is an answer to send.
Status Greeting::receive(bool* any) {
  const std::size_t wanted = handshake_.wants();
  const std::size_t before = piece_.size();
  piece_.resize(wanted);
  ssize_t count = 0;
  do {
    count = ::recv(socket_.get(), piece_.data() + before, wanted - before, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  piece_.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
  if (count == 0 || (count < 0 && errno == ECONNRESET)) return ended();
  if (count < 0) return errno == EAGAIN ? Status{} : errno_error("receive", errno);
  if (piece_.size() < wanted) return {};
  Handshake::Step step = handshake_.take(piece_);
  piece_.clear();
  to_send_.insert(to_send_.end(), step.reply.begin(), step.reply.end());
  *any = true;
  if (!step.status.ok()) {
    if (const Status sent = send(); !sent.ok()) return step.status;
  }
  return step.status;
}

}  // namespace backstay::net
