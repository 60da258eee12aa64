// The kernel's call that registers things in a ring of io_uring.
#pragma once

namespace backstay::files {

// Whether the call registers files: IORING_REGISTER_FILES, _FILES_UPDATE, _FILES2, _FILES_UPDATE2.
// The highest bit says how the ring is named.
constexpr bool registers_files(unsigned opcode) {
  const unsigned plain = opcode & 0x7fffffff;
  return plain == 2 || plain == 6 || plain == 13 || plain == 14;
}

// Before that call: all files of the process become real, if it registers any. Returns an error
// number.
int make_registered_real(unsigned opcode);

}  // namespace backstay::files
