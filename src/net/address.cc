#include "net/address.h"

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace backstay::net {

namespace {

Error bad_address(const std::string& text) {
  return Error(Code::invalid,
               "'" + text + "' is not an address: write it like node7:7000, or [fe80::1]:7000");
}

bool is_port(const std::string& text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};
using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;

Result<Interfaces> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return errno_error("list the network devices", errno);
  return Interfaces(list);
}

// Lower is better; over 2 is no address to use.
int rank_of(const ifaddrs& one) {
  if (!one.ifa_addr) return 3;
  if (one.ifa_addr->sa_family == AF_INET) return 0;
  if (one.ifa_addr->sa_family != AF_INET6) return 3;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr);
  return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 2 : 1;
}

SocketAddress copy_of(const sockaddr* from) {
  SocketAddress address;
  address.length = from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&address.storage, from, address.length);
  return address;
}

Status bind_and_listen(int socket, const SocketAddress& address) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket, address.get(), address.length) == 0 && ::listen(socket, SOMAXCONN) == 0)
    return {};
  if (errno == EADDRINUSE)
    return Error(Code::port_in_use, "port " + std::to_string(address.port()) + " is in use (" +
                                        address.text() +
                                        "): choose another, or 0 for any that is free");
  return errno_error("listen at " + address.text(), errno);
}

SocketAddress everywhere(int family) {
  SocketAddress any;
  if (family == AF_INET6) {
    any.length = sizeof(sockaddr_in6);
    reinterpret_cast<sockaddr_in6&>(any.storage).sin6_addr = in6addr_any;
  } else {
    any.length = sizeof(sockaddr_in);
  }
  any.storage.ss_family = static_cast<sa_family_t>(family);
  return any;
}

Result<Fd> listen_on(SocketAddress address, std::uint16_t port) {
  address.set_port(port);
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error("make a socket", errno);
  if (address.storage.ss_family == AF_INET6) {
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  BACKSTAY_TRY(bind_and_listen(socket.get(), address));
  return socket;
}

}  // namespace

Result<HostPort> split_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad_address(text);
  HostPort parts{text.substr(0, colon), text.substr(colon + 1)};
  if (parts.host.front() == '[' && parts.host.back() == ']')
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  else if (parts.host.find(':') != std::string::npos)
    return bad_address(text);
  if (parts.host.empty() || parts.host.find('\0') != std::string::npos || !is_port(parts.port))
    return bad_address(text);
  return parts;
}

std::uint16_t SocketAddress::port() const {
  return storage.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
}

std::string SocketAddress::text() const {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(get(), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  const std::string bare = host;
  return (storage.ss_family == AF_INET6 ? "[" + bare + "]" : bare) + ":" + std::to_string(port());
}

std::set<std::string> device_names() {
  std::set<std::string> names;
  const auto list = interfaces();
  for (const ifaddrs* one = list.ok() ? list->get() : nullptr; one; one = one->ifa_next)
    if (rank_of(*one) <= 2) names.insert(one->ifa_name);
  return names;
}

Result<SocketAddress> address_of_device(const std::string& device) {
  BACKSTAY_ASSIGN(Interfaces list, interfaces());
  const ifaddrs* best = nullptr;
  for (const ifaddrs* one = list.get(); one; one = one->ifa_next) {
    if (rank_of(*one) > 2 || one->ifa_name != device) continue;
    if (!best || rank_of(*one) < rank_of(*best)) best = one;
  }
  if (best) return copy_of(best->ifa_addr);
  return Error(Code::not_found,
               fmt::format("no network device '{}' with an address on this node; there are: {}",
                           device, fmt::join(device_names(), ", ")));
}

Result<Fd> listen_at(const SocketAddress* address, std::uint16_t port) {
  if (address) return listen_on(*address, port);
  Result<Fd> both = listen_on(everywhere(AF_INET6), port);
  if (both.ok() || both.error().code() == Code::port_in_use ||
      both.error().code() == Code::permission)
    return both;
  return listen_on(everywhere(AF_INET), port);  // a machine without IPv6
}

SocketAddress own_address(int socket) {
  SocketAddress address;
  address.length = sizeof address.storage;
  ::getsockname(socket, address.get(), &address.length);
  return address;
}

SocketAddress peer_address(int socket) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (::getpeername(socket, address.get(), &address.length) != 0) address = everywhere(AF_INET);
  return address;
}

}  // namespace backstay::net
