#include "io/ring.h"

#include <algorithm>

#include "io/posix.h"
#include "io/uring.h"

namespace backstay::io {

// More threads than this do not make a disk faster.
static constexpr unsigned threads_max = 8;

Result<std::unique_ptr<Ring>> make_ring(const RingOptions& options, RingKind* kind) {
  RingKind found;
  found.why_not = "switched off by the configuration";
  if (options.allow_io_uring) {
    auto ring = make_uring(options, &found);
    if (kind != nullptr) *kind = found;
    if (ring.ok()) return ring;
    found.why_not = ring.error().message();
  }
  if (kind != nullptr) *kind = found;
  return make_thread_ring(options.depth, std::min(options.depth, threads_max));
}

}  // namespace backstay::io
