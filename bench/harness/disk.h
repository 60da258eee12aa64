// The machine's limit: one process, one file, large sequential requests past the page cache.
//
// "io_uring": 8 requests of 4 MiB in flight; "pwrite"/"pread": one at a time. A write ends with
// fdatasync. Memory and sizes are multiples of 4096. Every function blocks and ends the program
// where the system refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace backstay::bench {

enum class Way { io_uring, one_by_one };

// Seconds to write `from` into a new file (a file of that name is removed before).
double raw_write_s(const std::string& path, std::span<const std::byte> from, Way way);
double raw_read_s(const std::string& path, std::span<std::byte> to, Way way);

// False where the file system of `dir` refuses O_DIRECT (tmpfs); the limits are then those of
// buffered files.
bool direct_works(const std::string& dir);

// Asks the kernel to forget the pages of all files below `dir` (synced before).
void drop_cache(const std::string& dir);

// Write requests that the device below `dir` has completed so far (/proc/diskstats), by anyone;
// -1 where the device is not listed (tmpfs, overlays).
std::int64_t device_writes(const std::string& dir);

}  // namespace backstay::bench
