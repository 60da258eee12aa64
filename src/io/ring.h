// Many reads and writes of one thread in flight at once.
//
// A Ring belongs to one thread at a time; it may be handed to another while nothing is in flight.
// Buffers and the File of a request must stay valid until its completion was reaped. EINTR and
// short transfers are handled inside: a completion is the whole request or an error; after an error
// any part of a write may have happened. Requests complete in any order. Implementations: uring.h
// (io_uring), posix.h (a pool of threads with pread/pwrite), memory.h (on a memory file system;
// completes in an order chosen by a seed).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  // Submitted and not yet reaped.
  virtual unsigned in_flight() const = 0;
  virtual void write(File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) = 0;
  // Errors in the completion: corrupt if the file ends before, io.
  virtual void read(File& file, std::uint64_t offset, std::span<std::byte> to,
                    std::uint64_t tag) = 0;
  // Returns what has completed. Blocks for at least one if `wait` and something is in flight.
  virtual std::vector<Completion> reap(bool wait) = 0;
  // The system has refused requests for good, and all later ones fail too. Make another ring.
  virtual bool broken() const { return false; }

  // Made because a better one could not be made yet: who keeps rings for later does not keep it.
  void make_stopgap() { stopgap_ = true; }
  bool stopgap() const { return stopgap_; }

 private:
  bool stopgap_ = false;
};

// The kind of Ring that was made, for the log and `backstay doctor`.
struct RingKind {
  bool io_uring = false;
  bool registered_buffers = false;
  std::string why_not;  // why io_uring or registration was refused; empty if both are used
};

struct RingOptions {
  unsigned depth = 8;
  bool allow_io_uring = true;
  // Memory that most requests lie in (the pool): pinned once instead of at each request. Must stay
  // mapped as long as the ring exists. May be empty.
  std::vector<std::span<std::byte>> registered = {};
};

// io_uring where the system allows it, else threads. `kind` may be null. Errors: io (not even
// threads can be started).
Result<std::unique_ptr<Ring>> make_ring(const RingOptions& options, RingKind* kind);

}  // namespace backstay::io
