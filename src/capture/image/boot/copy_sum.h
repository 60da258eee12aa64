// Copying with the checksum of docs/format in the same pass. One sum at a time: of the one thread
// that serves the companion. The source and the target do not overlap.
#pragma once

#include "capture/image/boot/text.h"

namespace backstay::image {

struct CopySum {
  void (*reset)();
  void (*copy)(void* to, const void* from, uint64_t size);
  uint64_t (*digest)();
};

// For the processor that this process runs on.
const CopySum& copy_sum();

extern const CopySum copy_sum_wide [[gnu::visibility("hidden")]];  // needs AVX2

}  // namespace backstay::image
