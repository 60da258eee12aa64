#include <cpuid.h>
#include <emmintrin.h>

namespace {
using Vector = __m128i;
Vector load(const Vector* from) { return _mm_loadu_si128(from); }
void store(Vector* to, Vector value) { _mm_stream_si128(to, value); }
}  // namespace

#include "capture/image/boot/copy_sum_body.h"

namespace backstay::image {

namespace {

const CopySum plain{reset, copy, digest};

// The processor has AVX2, and the kernel saves its registers.
bool has_wide() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  __cpuid(1, a, b, c, d);
  const bool saves = (c >> 27 & 1) != 0;
  if (!saves) return false;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  const bool registers = (a & 6) == 6;
  __cpuid_count(7, 0, a, b, c, d);
  return registers && (b >> 5 & 1) != 0;
}

}  // namespace

const CopySum& copy_sum() {
  static const bool wide = has_wide();
  return wide ? copy_sum_wide : plain;
}

}  // namespace backstay::image
