#include "capture/image/boot/window.h"

#include <linux/mman.h>

namespace backstay::image::arena {

namespace {
uint64_t used = 0;
bool mapped = false;
}  // namespace

void begin() {
  if (!mapped) {
    const long at = sys_map(arena_start, arena_end - arena_start, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    if (at != static_cast<long>(arena_start)) {
      give_up(Text() << "the address range of the boot program is taken", 78);
    }
    mapped = true;
  }
  used = 0;
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

}  // namespace backstay::image::arena
