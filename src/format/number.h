// The number of the format that this release writes, and the only one that it reads
// (docs/format/README.md).
#pragma once

#include <cstdint>

namespace backstay::format {

inline constexpr std::uint32_t format_number = 2;

}  // namespace backstay::format
