// Limits of a message, in every protocol.
#pragma once

#include <cstddef>

namespace backstay::wire {

inline constexpr std::size_t message_bytes_max = 64 * 1024;
// Lists longer than this are split over several messages.
inline constexpr std::size_t list_entries_max = 1024;

}  // namespace backstay::wire
