#include "capture/image/boot/steer.h"

#include <linux/mman.h>

#include "capture/image/boot/call_sites.h"
#include "capture/image/format/layout.h"
#include "capture/lower/table.h"

namespace backstay::image::steer {

namespace {

constexpr uint64_t large_page = 2 << 20;
constexpr int attempts_max = 1 << 16;
constexpr long no_memory = -12;  // ENOMEM
constexpr long is_taken = -17;   // EEXIST
constexpr int map_place = MAP_FIXED | MAP_FIXED_NOREPLACE;

uint64_t next = lower::first_free;

uint64_t page_up(uint64_t bytes) { return (bytes + page_bytes - 1) & ~(page_bytes - 1); }

}  // namespace

// Large mappings begin where the kernel can use large pages.
uint64_t take_place(uint64_t bytes) {
  bytes = page_up(bytes);
  uint64_t seen = __atomic_load_n(&next, __ATOMIC_RELAXED);
  for (;;) {
    uint64_t at = bytes >= large_page ? (seen + large_page - 1) & ~(large_page - 1) : seen;
    if (at + bytes > lower::range_end) at = lower::first_free;
    if (__atomic_compare_exchange_n(&next, &seen, at + bytes, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return at;
    }
  }
}

long map(uint64_t bytes, int protection, int flags, long fd, uint64_t offset) {
  for (int i = 0; i < attempts_max; ++i) {
    const long at =
        sys_map(take_place(bytes), bytes, protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
    if (at != is_taken) return at;
  }
  return no_memory;
}

namespace {

long reserve(uint64_t bytes) {
  return map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

long steer_map(const uint64_t* a) {
  const auto flags = static_cast<int>(a[3]);
  if ((flags & map_place) != 0) {
    return sys_map(a[0], a[1], static_cast<int>(a[2]), flags, static_cast<int>(a[4]), a[5]);
  }
  if (a[1] == 0 || a[1] > lower::range_end - lower::first_free) return no_memory;
  return map(a[1], static_cast<int>(a[2]), flags, static_cast<int>(a[4]), a[5]);
}

long remap(uint64_t at, uint64_t bytes, uint64_t wanted, uint64_t flags, uint64_t to) {
  return system_call(__NR_mremap, static_cast<long>(at), static_cast<long>(bytes),
                     static_cast<long>(wanted), static_cast<long>(flags), static_cast<long>(to));
}

// In its place if that is possible; else to a place of the range, which is reserved first: the
// kernel replaces what lies there.
long steer_remap(const uint64_t* a) {
  const uint64_t flags = a[3];
  if ((flags & MREMAP_MAYMOVE) == 0 || (flags & MREMAP_FIXED) != 0) {
    return remap(a[0], a[1], a[2], flags, a[4]);
  }
  const bool keeps = (flags & MREMAP_DONTUNMAP) != 0;
  const long same =
      keeps ? no_memory : remap(a[0], a[1], a[2], flags & ~uint64_t{MREMAP_MAYMOVE}, 0);
  if (same != no_memory) return same;
  const long to = reserve(a[2]);
  if (to < 0) return to;
  const long moved = remap(a[0], a[1], a[2], flags | MREMAP_FIXED, static_cast<uint64_t>(to));
  if (moved < 0) sys_unmap(static_cast<uint64_t>(to), page_up(a[2]));
  return moved;
}

// The kernel's struct shmid64_ds: permissions, then the size.
struct SharedMemory {
  uint8_t permissions[48];
  uint64_t bytes;
  uint64_t rest[16];
};

long steer_attach(const uint64_t* a) {
  constexpr uint64_t replaces = 040000;  // SHM_REMAP
  constexpr long status = 2;             // IPC_STAT
  SharedMemory memory{};
  if (a[1] != 0 ||
      system_call(__NR_shmctl, static_cast<long>(a[0]), status, address_of(&memory)) != 0) {
    return system_call(__NR_shmat, static_cast<long>(a[0]), static_cast<long>(a[1]),
                       static_cast<long>(a[2]));
  }
  const long to = reserve(memory.bytes);
  if (to < 0) return to;
  const long at =
      system_call(__NR_shmat, static_cast<long>(a[0]), to, static_cast<long>(a[2] | replaces));
  if (at < 0) sys_unmap(static_cast<uint64_t>(to), page_up(memory.bytes));
  return at;
}

}  // namespace

extern "C" [[gnu::used]] long backstay_steer(const Call* call) {
  switch (call->number) {
    case __NR_mmap: return steer_map(call->arguments);
    case __NR_mremap: return steer_remap(call->arguments);
    default: return steer_attach(call->arguments);
  }
}

BACKSTAY_CALL_SITE_FUNCTION(backstay_steer_mmap, backstay_steer, 9, -4096)
BACKSTAY_CALL_SITE_FUNCTION(backstay_steer_mmap_1, backstay_steer, 9, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_steer_mremap, backstay_steer, 25, -4096)
BACKSTAY_CALL_SITE_FUNCTION(backstay_steer_mremap_1, backstay_steer, 25, -4095)
BACKSTAY_CALL_SITE_FUNCTION(backstay_steer_shmat, backstay_steer, 30, -4096)
BACKSTAY_CALL_SITE_FUNCTION(backstay_steer_shmat_1, backstay_steer, 30, -4095)

const char* change_calls(uint64_t start, uint64_t end, bool whole_libc) {
  using Function = void (*)();
  struct Wanted {
    const char* name;
    uint32_t number;
    Function function[2];
  };
  constexpr Wanted all[] = {{"mmap", 9, {backstay_steer_mmap, backstay_steer_mmap_1}},
                            {"mremap", 25, {backstay_steer_mremap, backstay_steer_mremap_1}},
                            {"shmat", 30, {backstay_steer_shmat, backstay_steer_shmat_1}}};
  for (const Wanted& one : all) {
    const CallSite sites[] = {{reinterpret_cast<uint64_t>(one.function[0]), one.number, -4096},
                              {reinterpret_cast<uint64_t>(one.function[1]), one.number, -4095}};
    const uint64_t changed = change_sites(start, end, sites, 2);
    if (changed == 0 && (whole_libc || one.number == __NR_mmap)) return one.name;
  }
  return change_to_zero(start, end, __NR_brk) == 0 ? "brk" : nullptr;
}

}  // namespace backstay::image::steer
