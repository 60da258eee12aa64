// The body of copy_sum_plain.cc and copy_sum_wide.cc, which differ in their compiler options alone.
// Non-temporal stores keep the program's data in its caches, and the target is not read first
// (base/stream_copy.h and base/checksum.cc do the same with a library below them).
#define XXH_INLINE_ALL
#include <immintrin.h>
#include <xxhash.h>

#include "capture/image/boot/copy_sum.h"

namespace backstay::image {

namespace {

constexpr uint64_t block_bytes = 16 << 10;  // stays in the first level cache for its two readers
constexpr uint64_t line_bytes = 64;

alignas(64) XXH3_state_t state;

void stream(uint8_t* to, const uint8_t* from, uint64_t size) {
  const uint64_t lines = reinterpret_cast<uint64_t>(to) % line_bytes == 0 ? size / line_bytes : 0;
  const uint8_t* next = from + size;  // is fetched meanwhile; a fetch cannot fault
  for (uint64_t line = 0; line < lines; ++line) {
    const uint64_t at = line * line_bytes;
    _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T0);
    const auto* source = reinterpret_cast<const Vector*>(from + at);
    auto* target = reinterpret_cast<Vector*>(to + at);
    for (uint64_t i = 0; i < line_bytes / sizeof(Vector); ++i) store(target + i, load(source + i));
  }
  memcpy(to + lines * line_bytes, from + lines * line_bytes, size - lines * line_bytes);
}

void reset() { XXH3_64bits_reset(&state); }

void copy(void* to, const void* from, uint64_t size) {
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  for (uint64_t at = 0; at < size; at += block_bytes) {
    const uint64_t bytes = size - at < block_bytes ? size - at : block_bytes;
    XXH3_64bits_update(&state, in + at, bytes);
    stream(out + at, in + at, bytes);
  }
}

uint64_t digest() {
  _mm_sfence();  // the stores are visible to whoever is told of them
  return XXH3_64bits_digest(&state);
}

}  // namespace

}  // namespace backstay::image
