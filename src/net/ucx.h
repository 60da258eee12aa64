// BulkLane by UCX: active messages, moved by rendezvous. Built from ucx.cc, or from ucx_absent.cc
// if UCX was not found. Why it carries payload only, and what was observed of it:
// docs/decisions/0007-tcp-for-control-ucx-for-bulk.md.
#pragma once

#include <memory>
#include <string>

#include "net/bulk.h"

namespace backstay::net {

struct UcxOptions {
  // As UCX_NET_DEVICES: "mlx5_0:1", or "eth1".
  std::string devices;
  // As UCX_TLS. Transports within a host are never used: two agents of one machine may be on hosts
  // that share no memory.
  std::string transports = "ib";
};

// Errors: unsupported (no UCX in this build; no such transport on this machine), not_found (no such
// device; the message lists those there are), io.
Result<std::unique_ptr<BulkLane>> make_ucx(const UcxOptions& options);

}  // namespace backstay::net
