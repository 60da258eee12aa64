#include "bin/run/this_host.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/fd.h"
#include "base/machine.h"

namespace backstay::bin {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

std::string without_user(const std::string& name) { return name.substr(name.find('@') + 1); }

Addresses look_up(const std::string& name, int flags, int& failure) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  failure = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  return {failure == 0 ? found : nullptr, &::freeaddrinfo};
}

// Only one's own addresses can be bound.
bool is_own(const addrinfo& address) {
  const Fd socket(::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket.valid() && ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0;
}

}  // namespace

bool is_this_host(const std::string& with_user) {
  const std::string name = without_user(with_user);
  std::array<char, 256> own{};
  ::gethostname(own.data(), own.size() - 1);
  if (name == "localhost" || name == own.data() || name == short_name(own.data())) return true;
  int failure = 0;
  const auto address = look_up(name, AI_NUMERICHOST, failure);
  return address != nullptr && is_own(*address);
}

std::string why_unknown(const std::string& name) {
  int failure = 0;
  const auto address = look_up(without_user(name), 0, failure);
  return address ? "" : std::string("its name: ") + ::gai_strerror(failure);
}

}  // namespace backstay::bin
