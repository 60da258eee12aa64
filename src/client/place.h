// Source or target of a piece of an object: memory, a GPU's memory, or a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/result.h"

namespace backstay::client {

// Exactly one of `data` and `file` is set; nothing is owned.
struct Place {
  std::byte* data = nullptr;
  bool on_device = false;
  int file = -1;

  bool in_host_memory() const { return data != nullptr && !on_device; }
};

// Memory of the program: the host's, or a GPU's.
Place memory_at(void* data);

// Copies to.size() bytes from `offset` of the place into pool memory and takes them into `sum`.
// Host memory is read once. Errors: io, invalid (a file became shorter).
Status copy_in(const Place& from, std::uint64_t offset, std::span<std::byte> to, Checksum& sum);

// Copies host memory into pool memory and takes it into `sum`. Small pieces stay in the caches:
// they fill a cache line together.
void copy_piece(std::byte* to, Bytes from, Checksum& sum);

// Exchanges pool memory with the bytes at `offset` of a place in host memory.
void exchange(const Place& with, std::uint64_t offset, std::span<std::byte> bytes);

// Copies pool memory to `offset` of the place; takes the bytes into `sum` if it is not nullptr.
Status copy_out(const Place& to, std::uint64_t offset, Bytes from, Checksum* sum);

}  // namespace backstay::client
