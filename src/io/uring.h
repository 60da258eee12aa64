// Ring on the kernel's io_uring (liburing). Built from uring.cc, or from uring_absent.cc where
// liburing was not found.
#pragma once

#include "io/ring.h"

namespace backstay::io {

// Files must have a descriptor. `options.registered` is pinned in pieces of at most 1 GiB; where
// the system refuses that (memlock limit) the ring works without and kind->why_not says why.
// Errors: unsupported (no io_uring here: not compiled in, not in the kernel, or forbidden).
Result<std::unique_ptr<Ring>> make_uring(const RingOptions& options, RingKind* kind);

}  // namespace backstay::io
