// Messages that carry a descriptor, without a library. The kernel's own structs, which are not
// libc's.
#pragma once

#include "capture/image/boot/system.h"

namespace backstay::image {

inline constexpr long interrupted = -4;  // EINTR

struct Piece {
  void* bytes;
  uint64_t size;
};
struct Header {
  void* name;
  uint32_t name_bytes, zeros;
  Piece* pieces;
  uint64_t pieces_count;
  void* control;
  uint64_t control_bytes;
  uint32_t flags, zeros_too;
};
struct Rights {
  uint64_t bytes;
  int32_t level, type;
  int32_t descriptor, zeros;
};

// How many bytes came, or -errno. `descriptor`: what came along; -1: none. `flags`: of recvmsg.
long receive(long fd, void* bytes, uint64_t size, long flags, long& descriptor);
// One byte with a descriptor.
void send_descriptor(long fd, long descriptor);
long receive_descriptor(long fd);  // or -errno

}  // namespace backstay::image
