#include <immintrin.h>

namespace {
using Vector = __m256i;
Vector load(const Vector* from) { return _mm256_loadu_si256(from); }
void store(Vector* to, Vector value) { _mm256_stream_si256(to, value); }
}  // namespace

#include "capture/image/boot/copy_sum_body.h"

namespace backstay::image {

const CopySum copy_sum_wide{reset, copy, digest};

}  // namespace backstay::image
