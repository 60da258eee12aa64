// What the result of one read or write call means for a whole request.
//
// The one place that knows about EINTR, EAGAIN, short transfers and the end of a file; the plain
// calls (posix.cc) and io_uring (uring.cc) both ask it. No I/O here.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace backstay::io {

enum class Direction { read, write };

struct Transfer {
  Direction direction = Direction::read;
  bool direct = false;  // O_DIRECT: after an odd number of bytes it cannot go on
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t done = 0;
  unsigned idle = 0;  // calls in a row that moved nothing (EINTR, EAGAIN)

  std::uint64_t at() const { return offset + done; }
  // Length of the next call: what is left, at most 1 GiB (a call's own limit is a little under 2).
  std::uint32_t next_bytes() const;
  // True if the next call should wait a millisecond, since the last ones moved nothing.
  bool should_pause() const { return idle > 3; }
};

// The pause that should_pause() asks for.
void pause_a_millisecond();

// Takes in `answer`, a count of bytes or minus errno. True: the request is complete; false: call
// again with at() and next_bytes(). Errors: corrupt (the file ends before), io, no_space, again
// (refused a thousand times).
Result<bool> advance(Transfer& transfer, std::int64_t answer);

}  // namespace backstay::io
