// Addresses of sockets and the network devices that they belong to. Any thread; asks the kernel
// only.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <set>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::net {

// "host:port" or "[v6]:port" in its parts.
struct HostPort {
  std::string host;
  std::string port;  // digits
};
// Errors: invalid.
Result<HostPort> split_address(const std::string& text);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  // Port in the machine's byte order.
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  // "10.0.0.7:7000", "[fe80::1]:7000"
  std::string text() const;
};

// Network devices of this node that have an address.
std::set<std::string> device_names();

// The address of a device (IPv4 before IPv6, link-local last), port 0. Errors: not_found (no such
// device, or one without an address; the message lists those that there are).
Result<SocketAddress> address_of_device(const std::string& device);

// A non-blocking socket that listens: at `address`, or everywhere if it is null. Errors:
// port_in_use, permission, io.
Result<Fd> listen_at(const SocketAddress* address, std::uint16_t port);
// The address to which a socket is bound, and that of its peer.
SocketAddress own_address(int socket);
SocketAddress peer_address(int socket);

}  // namespace backstay::net
