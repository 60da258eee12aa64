// What `backstay exec` tells this library, in variables of the environment. Read once, at start.
//
//     BACKSTAY_CAPTURE       patterns of absolute paths, one a line (pattern.h); none: nothing is
//                            captured, and every call goes straight on
//     BACKSTAY_COLLECTOR     the socket of the job's collector on this node (collect.h); none:
//     files
//                            are brought to their places by this library
//     BACKSTAY_COLLECTOR_PROGRAM   what to start where no collector answers there
//     BACKSTAY_CAPTURE_CLOSE       captured, or local: what close waits for
//     BACKSTAY_CAPTURE_FSYNC       local, or home: what fsync waits for
//     BACKSTAY_CAPTURE_ROOT        process id of the first process of the tree: it waits at its end
//     BACKSTAY_CAPTURE_POOL_KIB    smaller files do not go to the collector; without it 256
//     BACKSTAY_CAPTURE_MIB   how much memory the open files of this process may fill together;
//                            without it a quarter of what is available at start
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace backstay::files {

struct Settings {
  std::string_view patterns;  // in the environment as it was at start, copied
  std::uint64_t memory_bytes_max = 0;
};

struct PoolSettings {
  char socket[108] = {};    // "": there is no collector
  char program[4096] = {};  // "": it cannot be started here
  std::uint64_t bytes_min = 0;
  bool until_local = false;
  bool sync_local = true;
  pid_t root = 0;
  char** environment = nullptr;  // for a collector: copied at start
};
PoolSettings read_pool_settings();

// Reads the environment. Patterns that do not fit into the library's own memory (64 KiB) are left
// out whole, with a message on standard error.
Settings read_settings();

// A line on standard error: "backstay: " and the parts.
void tell(std::string_view what, std::string_view path, std::string_view then);

}  // namespace backstay::files
