// What the kernel knows of a Unix socket, asked by netlink (sock_diag(7)): nothing in /proc names
// the other end.
#pragma once

#include "capture/image/boot/system.h"
#include "capture/image/format/layout.h"

namespace backstay::image {

// Fills `peer` and `shut`. False: it is no Unix socket, it was never connected, or the kernel does
// not answer such questions (CONFIG_UNIX_DIAG).
bool look_at_unix_socket(uint64_t inode, SocketState& state);

}  // namespace backstay::image
