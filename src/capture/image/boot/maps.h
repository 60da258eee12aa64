// The process's own map (/proc/self/maps), as the kernel tells it.
#pragma once

#include "capture/image/boot/files.h"
#include "capture/image/boot/window.h"

namespace backstay::image {

struct Mapping {
  uint64_t start = 0, end = 0, offset = 0;
  uint64_t device = 0, inode = 0;
  uint32_t protection = 0;  // PROT_*
  bool shared = false;
  char name[4096] = {};  // a path, or what the kernel calls it in brackets; empty: anonymous

  bool is_deleted() const { return ends_with(name, " (deleted)"); }
  bool is_path() const { return name[0] == '/'; }
};

// Calls visit(const Mapping&) for each mapping outside of the boot program's window, in the order
// of addresses, without the kernel's page at the very top. False where the map cannot be read.
bool read_mapping(const char* line, Mapping& mapping);
template <typename Visit>
bool each_mapping(Visit visit) {
  Lines lines("/proc/self/maps");
  if (!lines.good()) return false;
  while (const char* line = lines.next()) {
    Mapping mapping;
    if (!read_mapping(line, mapping) || in_window(mapping.start, mapping.end)) continue;
    if (same_text(mapping.name, "[vsyscall]")) continue;
    visit(mapping);
  }
  return true;
}

}  // namespace backstay::image
