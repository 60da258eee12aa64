#include "capture/image/boot/snapshot.h"

#include <linux/mman.h>

#include "capture/image/boot/areas.h"
#include "capture/image/boot/companion.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/describe.h"

namespace backstay::image::snapshot {

namespace {

constexpr long of_our_parent = 0x8000;  // CLONE_PARENT
constexpr long untraced = 0x800000;     // CLONE_UNTRACED
constexpr long end_with_parent = 1;     // PR_SET_PDEATHSIG
constexpr long set_name = 15;           // PR_SET_NAME
constexpr long kill_signal = 9;
constexpr long core_bytes = 4;  // RLIMIT_CORE

// Pages that other processes may write, too, are copied while the program stands still.
constexpr uint64_t shared_most = 1 << 20;

bool is_shared(const Area& area) {
  return area.kind == static_cast<uint32_t>(AreaKind::shared_memory) ||
         area.kind == static_cast<uint32_t>(AreaKind::shared_file);
}

uint64_t shared_bytes(const Tables& tables) {
  uint64_t bytes = 0;
  for (const Area& area : tables.areas) {
    if (!is_shared(area)) continue;
    for (const Run& run : runs_of(tables.runs, area)) bytes += bytes_of(run);
  }
  return bytes;
}

// Pages that other processes go on writing become the copy's own.
void own_run(const Area& area, const Run& run, Trouble& trouble) {
  const uint64_t bytes = bytes_of(run);
  void* held = arena::take(bytes);
  if ((area.protection & PROT_READ) == 0) sys_protect(run.address, bytes, PROT_READ);
  memcpy(held, reinterpret_cast<const void*>(run.address), bytes);
  const long at =
      sys_map(run.address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
  if (at != static_cast<long>(run.address)) {
    trouble << "shared memory cannot be copied (error " << -at << ")";
  } else {
    memcpy(reinterpret_cast<void*>(run.address), held, bytes);
  }
}

bool is_mapped(uint64_t page) {
  uint8_t in_memory = 0;
  return system_call(__NR_mincore, static_cast<long>(page), page_bytes, address_of(&in_memory)) ==
         0;
}

// No page of a run is zeros where no file stands behind it.
bool is_empty(const Area& area, uint64_t page) {
  const bool hidden = (area.protection & PROT_READ) == 0;
  if (hidden) sys_protect(page, page_bytes, PROT_READ);
  const auto* words = reinterpret_cast<const volatile uint64_t*>(page);
  bool empty = true;
  for (uint64_t i = 0; empty && i < page_bytes / sizeof *words; ++i) empty = words[i] == 0;
  if (hidden) sys_protect(page, page_bytes, static_cast<int>(area.protection));
  return empty;
}

// A program may keep memory from its children (MADV_DONTFORK), or give it to them empty
// (MADV_WIPEONFORK). One page of an area says it for all of them.
void own_memory(const Tables& tables, uint64_t kept_bytes, Trouble& trouble) {
  const Area* seen = nullptr;
  for (const Run& run : tables.runs) {
    if (!trouble.empty()) return;
    const Area& area = area_of(tables.areas, run);
    // Contents of files: contents::own().
    if (run.offset < kept_bytes || is_content(area)) continue;
    if (is_shared(area)) {
      own_run(area, run, trouble);
      continue;
    }
    if (seen == &area) continue;
    seen = &area;
    const bool has_file = area.file != no_index;  // MADV_WIPEONFORK takes no such memory
    if (!is_mapped(run.address) || (!has_file && is_empty(area, run.address))) {
      trouble << "the program keeps memory from its children (madvise)";
    }
  }
}

// Short of memory, the machine shall end the copy and not the program.
void end_before_the_program() {
  const long fd = sys_open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  sys_write(fd, "1000", 4);
  sys_close(fd);
}

void become_snapshot(long channel, long parent, const Tables& tables, uint64_t kept_bytes,
                     Trouble& trouble) {
  system_call(__NR_prctl, end_with_parent, kill_signal);
  if (system_call(__NR_getppid) != parent) sys_exit(0);  // it has ended in between
  system_call(__NR_setpgid, 0, 0);  // signals to the program's group are not for it
  system_call(__NR_prctl, set_name, address_of("backstay-snap"));
  contents::own(tables, trouble);
  system_call(__NR_close_range, channel + 1, ~0U, 0);
  if (channel > 0) system_call(__NR_close_range, 0, channel - 1, 0);
  const uint64_t none[2] = {0, 0};
  system_call(__NR_setrlimit, core_bytes,
              address_of(none));  // what it fails by is not the program's
  end_before_the_program();
  if (trouble.empty()) own_memory(tables, kept_bytes, trouble);
}

}  // namespace

long fork(long channel, const Tables& tables, uint64_t kept_bytes, Refused& refused,
          Trouble& trouble) {
  refused = Refused::now;
  if (shared_bytes(tables) > shared_most) {
    trouble << (contents::any(tables) ? "contents of files are saved with it"
                                      : "the program shares memory with other processes");
    return -1;
  }
  if (writes_come_unseen()) {
    trouble << "a device may write into the program's memory";
    return -1;
  }
  const long parent = system_call(__NR_getppid);
  companion::give_pool_to_children(true);
  const long process = system_call(__NR_clone, of_our_parent | untraced);
  if (process == 0) {
    become_snapshot(channel, parent, tables, kept_bytes, trouble);
    return 0;
  }
  companion::give_pool_to_children(false);
  if (process < 0) {
    refused = Refused::again;
    trouble << "the process cannot be copied (error " << -process << ")";
  }
  return process;
}

}  // namespace backstay::image::snapshot
