// Many reads and writes of one thread in flight at once.
//
// A Ring belongs to one thread. Buffers of a request must stay valid until its completion was
// reaped. EINTR and short transfers are handled inside: a completion is the whole request or an
// error. Implementations: uring.h (io_uring), posix.h (a pool of threads with pread/pwrite),
// memory.h (works at once, on a memory file system; completes in an order chosen by a seed).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace backstay::io {

struct Completion {
  std::uint64_t tag = 0;
  Status status;
};

class Ring {
 public:
  virtual ~Ring() = default;  // waits for what is in flight
  // How many requests may be in flight; submitting more is our bug (checked).
  virtual unsigned depth() const = 0;
  virtual unsigned in_flight() const = 0;
  virtual void write(File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) = 0;
  virtual void read(File& file, std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) = 0;
  // Returns what has completed. Blocks for at least one if `wait` and something is in flight.
  virtual std::vector<Completion> reap(bool wait) = 0;
};

// What a Ring was made of, for the log and `backstay doctor`.
struct RingKind {
  bool io_uring = false;
  bool registered_buffers = false;
  std::string why_not;  // why io_uring or registration was refused; empty if both are used
};

}  // namespace backstay::io
