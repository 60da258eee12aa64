#include "base/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state lives inside ours
#include <xxhash.h>
#if defined(__x86_64__)
#include <immintrin.h>
#include <xxh_x86dispatch.h>  // replaces XXH3_64bits* by the dispatching functions
#endif

#include <algorithm>
#include <cstring>
#include <new>

namespace backstay {

namespace {

// Small enough that the block stays in the first or second level cache between hashing and
// copying, large enough that the calls do not show.
constexpr std::size_t block_bytes = 32 * 1024;

#if defined(__x86_64__)
__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from,
                                               std::size_t size) {
  for (std::size_t at = 0; at < size; at += 128) {
    const auto* source = reinterpret_cast<const __m256i*>(from + at);
    auto* target = reinterpret_cast<__m256i*>(to + at);
    const __m256i a = _mm256_loadu_si256(source);
    const __m256i b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2);
    const __m256i d = _mm256_loadu_si256(source + 3);
    _mm256_stream_si256(target, a);
    _mm256_stream_si256(target + 1, b);
    _mm256_stream_si256(target + 2, c);
    _mm256_stream_si256(target + 3, d);
  }
}

void copy_block(std::byte* to, const std::byte* from, std::size_t size) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  // Streaming stores need an aligned target; short pieces gain nothing.
  const std::size_t head =
      std::min<std::size_t>(size, (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64);
  if (!has_avx2 || size < 4096) {
    std::memcpy(to, from, size);
    return;
  }
  std::memcpy(to, from, head);
  const std::size_t body = (size - head) / 128 * 128;
  copy_avx2(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, size - head - body);
}

void store_fence() { _mm_sfence(); }
#else
void copy_block(std::byte* to, const std::byte* from, std::size_t size) {
  std::memcpy(to, from, size);
}
void store_fence() {}
#endif

}  // namespace

struct Checksum::State {
  XXH3_state_t xxh;
};

std::uint64_t checksum(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Checksum::Checksum() : state_(new State) { reset(); }
Checksum::~Checksum() = default;

void Checksum::reset() { XXH3_64bits_reset(&state_->xxh); }

void Checksum::update(Bytes bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }

void Checksum::update_copy(std::byte* to, Bytes from) {
  for (std::size_t at = 0; at < from.size(); at += block_bytes) {
    const std::size_t size = std::min(block_bytes, from.size() - at);
    XXH3_64bits_update(&state_->xxh, from.data() + at, size);
    copy_block(to + at, from.data() + at, size);
  }
  store_fence();
}

std::uint64_t Checksum::digest() const { return XXH3_64bits_digest(&state_->xxh); }

void stream_copy(std::byte* to, Bytes from) {
  copy_block(to, from.data(), from.size());
  store_fence();
}

}  // namespace backstay
