// Whole transfers at an offset of an open file: EINTR, EAGAIN and short ones are continued
// (transfer.h). Blocks. Any thread.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace backstay::io {

// `direct`: the descriptor was opened with O_DIRECT; then offset, size and address are multiples of
// 4096.
// Errors: corrupt (the file ends before), io.
Status read_all(int fd, std::uint64_t offset, std::span<std::byte> to, bool direct = false);
// Errors: no_space, io.
Status write_all(int fd, std::uint64_t offset, Bytes from, bool direct = false);

}  // namespace backstay::io
