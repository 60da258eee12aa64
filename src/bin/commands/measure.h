// Measurements of this machine for `backstay probe` and `backstay doctor`. All block for seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "bin/parts/progress.h"
#include "io/ring.h"

namespace backstay::bin {

struct MemorySpeed {
  unsigned processes = 0;
  std::uint64_t bytes_each = 0;
  double copy_bytes_per_s = 0;  // of all processes together; median of several rounds
};

// `processes` processes copy from private to private memory at the same time, all touched before.
Result<MemorySpeed> measure_memory(unsigned processes, std::uint64_t bytes_each);

struct DiskSpeed {
  std::uint64_t bytes = 0;
  double write_bytes_per_s = 0;  // until the data is on the device
  double read_bytes_per_s = 0;   // not from the page cache, if `direct`
  bool direct = false;
  bool io_uring = false;
  std::string why_not;  // why io_uring is not used
};

// Writes and reads a file in `dir` (made if missing) the way the agent does; removes it.
Result<DiskSpeed> measure_disk(const Config& config, const std::string& dir, std::uint64_t bytes,
                               Progress& progress);

// Writes or reads the first `bytes` of the file in pieces, as many at once as fit into `memory` and
// the ring. On return, also with an error, nothing is in flight.
Status move_all(io::Ring& ring, io::File& file, std::span<std::byte> memory, std::size_t piece,
                std::uint64_t bytes, bool writing, Progress& progress);

// Bytes a second through a TCP connection of this machine with itself.
Result<double> measure_loopback(double seconds);

}  // namespace backstay::bin
