// What this machine and this user are: the few facts that defaults are made of.
// Any thread; short reads of /proc and of the user database, no lasting state.
#pragma once

#include <cstdint>
#include <string>

namespace backstay {

// Bytes of memory that this process may use: the machine's, or the control group's limit if
// smaller.
std::uint64_t memory_bytes();

// The login name of the effective user; "uid-1000" where the user database does not know it.
std::string user_name();

// The home directory: $HOME, else from the user database, else "".
std::string home_directory();

}  // namespace backstay
