// The one checksum of Backstay: XXH3, 64 bits, seed 0 (xxHash library, run-time dispatch to the
// widest vector unit of the CPU). Chunks, headers, indexes and records all use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace backstay {

std::uint64_t checksum(Bytes bytes);

// The checksum of bytes that arrive in pieces. Not for concurrent use. Reusable after reset().
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void reset();
  void update(Bytes bytes);
  // Copies `from` to `to` (same length, no overlap) and takes it into the checksum on the way:
  // the source is read from memory once. Uses non-temporal stores, so `to` does not fill the
  // caches; a store fence has been done on return. `to` should be 64-byte aligned for speed.
  void update_copy(std::byte* to, Bytes from);
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace backstay
