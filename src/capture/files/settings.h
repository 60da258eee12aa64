// What `backstay exec` tells this library, in variables of the environment. Read once, at start.
//
//     BACKSTAY_CAPTURE       patterns of absolute paths, one a line (pattern.h); none: nothing is
//                            captured, and every call goes straight on
//     BACKSTAY_CAPTURE_MIB   how much memory the open files of this process may fill together;
//                            without it a quarter of what is available at start
#pragma once

#include <cstdint>
#include <string_view>

namespace backstay::files {

struct Settings {
  std::string_view patterns;  // in the environment as it was at start, copied
  std::uint64_t memory_bytes_max = 0;
};

// Reads the environment. Patterns that do not fit into the library's own memory (64 KiB) are left
// out whole, with a message on standard error.
Settings read_settings();

// A line on standard error: "backstay: " and the parts.
void tell(std::string_view what, std::string_view path, std::string_view then);

}  // namespace backstay::files
