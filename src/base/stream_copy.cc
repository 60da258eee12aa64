#include "base/stream_copy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace backstay {

namespace {

// Half of the first level cache: what stream_exchange keeps of one side.
constexpr std::size_t exchange_bytes = 16 * 1024;

#if defined(__x86_64__)
constexpr std::size_t line_bytes = 64;
constexpr std::size_t step_bytes = 2 * line_bytes;
constexpr std::size_t short_bytes = 4096;  // pieces that gain nothing from streaming

template <bool fetch_next>
__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from,
                                               std::size_t size) {
  const auto next = reinterpret_cast<std::uintptr_t>(from) + size;
  for (std::size_t at = 0; at < size; at += step_bytes) {
    if constexpr (fetch_next) {
      _mm_prefetch(reinterpret_cast<const void*>(next + at), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const void*>(next + at + line_bytes), _MM_HINT_T0);
    }
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

template <bool fetch_next>
void copy(std::byte* to, const std::byte* from, std::size_t size) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (!has_avx2 || size < short_bytes) {
    std::memcpy(to, from, size);
    return;
  }
  // Streaming stores need an aligned target.
  const std::size_t head =
      (line_bytes - reinterpret_cast<std::uintptr_t>(to) % line_bytes) % line_bytes;
  std::memcpy(to, from, head);
  const std::size_t body = (size - head) / step_bytes * step_bytes;
  copy_avx2<fetch_next>(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, size - head - body);
}
#else
template <bool fetch_next>
void copy(std::byte* to, const std::byte* from, std::size_t size) {
  std::memcpy(to, from, size);
}
#endif

}  // namespace

void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void stream_copy(std::byte* to, Bytes from) {
  copy<false>(to, from.data(), from.size());
  stream_fence();
}

void stream_copy_and_fetch_next(std::byte* to, Bytes from) {
  copy<true>(to, from.data(), from.size());
}

void stream_exchange(std::span<std::byte> one, std::span<std::byte> other) {
  BACKSTAY_CHECK(one.size() == other.size());
  alignas(64) std::array<std::byte, exchange_bytes> kept;
  for (std::size_t at = 0; at < one.size(); at += exchange_bytes) {
    const std::size_t size = std::min(exchange_bytes, one.size() - at);
    std::memcpy(kept.data(), one.data() + at, size);
    copy<false>(one.data() + at, other.data() + at, size);
    copy<false>(other.data() + at, kept.data(), size);
  }
  stream_fence();
}

}  // namespace backstay
