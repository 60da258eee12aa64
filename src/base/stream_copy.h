// Moving large blocks of memory past the caches: with non-temporal stores where the CPU has them.
// The stores do not evict the data that the program works on, and the target is not read first.
// Targets that are 64-byte aligned are fastest. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace backstay {

// Copies `from` to `to` (no overlap). A store fence has been done on return.
void stream_copy(std::byte* to, Bytes from);

// The same without the fence, and while it stores it fetches the `from.size()` bytes that follow
// `from` into the first level cache, for the code that works on them next. They may lie past the
// end of the source: a fetch cannot fault. For sources that fit into half of that cache.
void stream_copy_and_fetch_next(std::byte* to, Bytes from);

// Exchanges two blocks of the same length (no overlap). A store fence has been done on return.
void stream_exchange(std::span<std::byte> one, std::span<std::byte> other);

// Makes the stores of this thread visible to every thread that is notified of them from now on.
void stream_fence();

}  // namespace backstay
