// Transport over TCP: sockets of the kernel, epoll, one connection a peer
// (docs/protocol/network.md).
//
// The descriptor is an epoll descriptor. While there are connections a timer wakes it ten times in
// dead_after_s; without any it sleeps for good.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/connection.h"
#include "net/secret.h"
#include "net/transport.h"

namespace backstay::net {

struct TcpOptions {
  Secret secret;              // of the job
  std::string identity = {};  // at most identity_bytes_max bytes (handshake.h)
  std::string device = {};    // of the checkpoint network, "eth1"; empty: all
  std::uint16_t port = 0;     // 0: any that is free
  double dead_after_s = 10;
  ConnectionLimits limits = {};
  // Carries the payload of fetches to peers that have one too; null: the connection does (ucx.h).
  std::unique_ptr<BulkLane> bulk = {};
};

// Listens when it returns. Errors: invalid (identity too long, dead_after_s not above 0), not_found
// (no such device; the message lists those there are), port_in_use, permission, io.
Result<std::unique_ptr<Transport>> make_tcp(TcpOptions options);

}  // namespace backstay::net
