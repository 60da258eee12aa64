// A request of a ring that keeps it: to carry it out by File's blocking calls, or to hand it on.
#pragma once

#include <cstdint>
#include <span>

#include "io/file.h"

namespace backstay::io {

struct BlockingRequest {
  File* file = nullptr;
  std::uint64_t offset = 0;
  Bytes from;               // of a write
  std::span<std::byte> to;  // of a read
  bool read = false;
  std::uint64_t tag = 0;

  Status carry_out() const {
    return read ? file->read_at(offset, to) : file->write_at(offset, from);
  }
};

}  // namespace backstay::io
