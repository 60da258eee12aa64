#include "capture/image/boot/window.h"

#include <linux/mman.h>

namespace backstay::image {

// With mlockall the kernel fills new memory at once where it may be written. So it is mapped
// without any access, unlocked, and made writable then.
long map_own(uint64_t start, uint64_t bytes) {
  constexpr long taken = -17;  // EEXIST
  const long at = sys_map(start, bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
  if (at < 0) return at;
  if (at != static_cast<long>(start)) return taken;  // a kernel without MAP_FIXED_NOREPLACE
  system_call(__NR_munlock, static_cast<long>(start), static_cast<long>(bytes));
  const long writable = sys_protect(start, bytes, PROT_READ | PROT_WRITE);
  if (writable != 0) sys_unmap(start, bytes);
  return writable;
}

namespace arena {

namespace {
uint64_t used = 0;
bool mapped = false;
}  // namespace

long begin() {
  used = 0;
  if (mapped) return 0;
  const long wrong = map_own(arena_start, arena_end - arena_start);
  mapped = wrong == 0;
  return wrong;
}

void* take(uint64_t bytes) {
  const uint64_t at = arena_start + used;
  used += (bytes + 15) / 16 * 16;
  if (used > arena_end - arena_start) give_up(Text() << "the image's tables do not fit", 78);
  return reinterpret_cast<void*>(at);
}

void end() {
  sys_unmap(arena_start, arena_end - arena_start);
  mapped = false;
  used = 0;
}

}  // namespace arena

}  // namespace backstay::image
