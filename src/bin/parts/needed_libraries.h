// The libraries that a program's file names as needed (DT_NEEDED of ELF). Blocks on the file
// system; any thread.
#pragma once

#include <string>
#include <vector>

namespace backstay::bin {

// Of a file of 64 bits in this machine's byte order; empty: it names none, or cannot be read.
std::vector<std::string> needed_libraries(const std::string& path);

}  // namespace backstay::bin
