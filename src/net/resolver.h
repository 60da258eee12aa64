// Names of hosts to addresses without waiting: the system's resolver blocks, so each lookup has a
// thread of its own.
//
// Owned by one thread. The destructor does not wait for lookups that have no answer yet: their
// threads end when the system answers, and use nothing of the owner.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/address.h"

namespace backstay::net {

class Resolver {
 public:
  struct Answer {
    std::uint64_t tag = 0;
    Result<std::vector<SocketAddress>> addresses;  // unreachable where the name is unknown
  };

  Resolver();

  // For poll(): readable while answers() has something.
  int descriptor() const;
  // At once and without a thread where the host is a number.
  void ask(std::uint64_t tag, const HostPort& where);
  std::vector<Answer> answers();

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace backstay::net
