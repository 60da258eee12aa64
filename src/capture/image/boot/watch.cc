#include "capture/image/boot/watch.h"

#include <linux/mman.h>

#include "capture/image/boot/pages.h"

namespace backstay::image::watch {

namespace {

// The kernel's own names are those of linux/userfaultfd.h, which older machines have without them.
constexpr long user_mode_only = 1;            // UFFD_USER_MODE_ONLY: needs no privilege
constexpr long api_call = 0xc018aa3f;         // UFFDIO_API
constexpr uint64_t api_number = 0xaa;         // UFFD_API
constexpr uint64_t asynchronous = 1U << 15;   // UFFD_FEATURE_WP_ASYNC
constexpr long register_call = 0xc020aa00;    // UFFDIO_REGISTER
constexpr uint64_t of_writes = 1U << 1;       // UFFDIO_REGISTER_MODE_WP
constexpr long unregister_call = 0x8010aa01;  // UFFDIO_UNREGISTER
constexpr long protect_call = 0xc018aa06;     // UFFDIO_WRITEPROTECT; without a mode it ends that

struct Api {
  uint64_t api, features, calls;
};
struct Registered {
  uint64_t start, bytes, mode, calls;
};
struct Protected {
  uint64_t start, bytes, mode;
};

long watcher = -1;
bool tried = false;

bool register_area(const Area& area) {
  Registered range{area.start, area.end - area.start, of_writes, 0};
  return watcher >= 0 && system_call(__NR_ioctl, watcher, register_call, address_of(&range)) == 0;
}

// The kernel keeps its notes of a mapping whose watch it ends. A page that was written since then
// can be written without a fault, and is still noted as unwritten: no later write would be seen.
bool remove_notes(const Area& area) {
  return each_unwritten(area, [](uint64_t start, uint64_t end) {
    Protected none{start, end - start, 0};
    return system_call(__NR_ioctl, watcher, protect_call, address_of(&none)) == 0;
  });
}

// Removes all notes, too.
void unregister_area(const Area& area) {
  const uint64_t range[2] = {area.start, area.end - area.start};
  system_call(__NR_ioctl, watcher, unregister_call, address_of(range));
}

// A page that is watched, moved, and written there: the next look must find it.
bool sees_what_moved() {
  constexpr long may_move_to = 3;  // MREMAP_MAYMOVE | MREMAP_FIXED
  const long mapped = sys_map(trial_place, page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (mapped != static_cast<long>(trial_place)) return false;
  auto* page = reinterpret_cast<volatile uint8_t*>(trial_place);
  page[0] = 1;
  const Area first{trial_place, trial_place + page_bytes, 0, 0, 0, 0, 0, 0};
  const Area second{first.end, first.end + page_bytes, 0, 0, 0, 0, 0, 0};
  const bool unwritten = register_area(first) && is_written(first) && !is_written(first);
  const long moved = system_call(__NR_mremap, static_cast<long>(first.start), page_bytes,
                                 page_bytes, may_move_to, static_cast<long>(second.start));
  bool found = false;
  if (moved == static_cast<long>(second.start)) {
    page[page_bytes] = 2;
    found = register_area(second) && is_written(second);
  }
  sys_unmap(first.start, 2 * page_bytes);
  return unwritten && found;
}

}  // namespace

bool begin() {
  if (tried) return watcher >= 0;
  tried = true;
  const long fd = system_call(__NR_userfaultfd, O_CLOEXEC | user_mode_only);
  if (fd < 0) return false;
  Api api{api_number, asynchronous, 0};
  if (system_call(__NR_ioctl, fd, api_call, address_of(&api)) != 0) {
    sys_close(fd);
    return false;
  }
  watcher = fd;
  if (sees_what_moved()) return true;
  sys_close(fd);
  watcher = -1;
  return false;
}

bool add(const Area& area) {
  if (!register_area(area)) return false;
  if (remove_notes(area)) return true;
  unregister_area(area);
  return false;
}

void start(const Area& area) {
  if (add(area)) forget_writes(area);
}

long descriptor() { return watcher; }

void move_descriptor(long to) { watcher = to; }

}  // namespace backstay::image::watch
