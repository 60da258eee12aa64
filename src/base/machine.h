// Facts about this machine and this user from which defaults are made. Any thread; short reads of
// /proc and of the user database, no lasting state.
#pragma once

#include <cstdint>
#include <string>

namespace backstay {

// Bytes of memory that this process may use: the machine's, or the smallest limit of its control
// groups. `root` is put before /proc and /sys: for tests.
std::uint64_t memory_bytes(const std::string& root = "");

// Memory that could be used now without taking it from another process: what is available on the
// machine, or in the control group that has least. The cache of files that a group could drop
// counts as available.
struct MemoryLeft {
  std::uint64_t bytes = UINT64_MAX;  // where nothing is known
  std::string of;                    // "the machine", or "control group /..."
};
MemoryLeft memory_left(const std::string& root = "");

// Memory that this process has in RAM now.
std::uint64_t resident_bytes();

// The login name of the effective user; "uid-1000" where the user database does not know it.
std::string user_name();

// The host's name; "" where it has none.
std::string host_name();
// The name of a host up to its first dot.
std::string short_name(const std::string& host);

// Another one after each start of this machine; "" where nothing tells.
std::string boot_id();

// The home directory: $HOME, else from the user database, else "".
std::string home_directory();

}  // namespace backstay
