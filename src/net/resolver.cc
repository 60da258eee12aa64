#include "net/resolver.h"

#include <netdb.h>
#include <sys/eventfd.h>

#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

namespace backstay::net {

struct Resolver::Mailbox {
  Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;  // guards answers
  std::vector<Answer> answers;

  void put(Answer answer) {
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(answer));
    ::eventfd_write(wake.get(), 1);
  }
};

namespace {

std::vector<SocketAddress> copy_list(const addrinfo* list) {
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = list; one; one = one->ai_next) {
    SocketAddress address;
    address.length = one->ai_addrlen;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    addresses.push_back(address);
  }
  return addresses;
}

Result<std::vector<SocketAddress>> look_up(const HostPort& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &list);
  if (error != 0)
    return Error(Code::unreachable, "the name '" + where.host + "' does not resolve (" +
                                        ::gai_strerror(error) +
                                        "): make it known on all nodes, or set network.device");
  auto addresses = copy_list(list);
  ::freeaddrinfo(list);
  return addresses;
}

}  // namespace

Resolver::Resolver() : mailbox_(std::make_shared<Mailbox>()) {}

int Resolver::descriptor() const { return mailbox_->wake.get(); }

void Resolver::ask(std::uint64_t tag, const HostPort& where) {
  auto number = look_up(where, AI_NUMERICHOST);
  if (number.ok()) return mailbox_->put({tag, std::move(number)});
  try {
    std::thread([mailbox = mailbox_, tag, where] {
      mailbox->put({tag, look_up(where, 0)});
    }).detach();
  } catch (const std::system_error& refused) {
    mailbox_->put(
        {tag, errno_error("start a thread to look up " + where.host, refused.code().value())});
  }
}

std::vector<Resolver::Answer> Resolver::answers() {
  eventfd_t ignored = 0;
  ::eventfd_read(mailbox_->wake.get(), &ignored);
  const std::lock_guard lock(mailbox_->mutex);
  return std::exchange(mailbox_->answers, {});
}

}  // namespace backstay::net
