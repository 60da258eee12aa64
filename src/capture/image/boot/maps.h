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
  // Not the boot program's window, and not the kernel's page at the very top.
  bool is_programs() const { return !in_window(start, end) && !same_text(name, "[vsyscall]"); }
};

bool read_mapping(const char* line, Mapping& mapping);

// Calls visit(const Mapping&) for each mapping of the program, in the order of addresses. False
// where the map cannot be read. A visit that changes the map sees parts of it twice, or not at all.
template <typename Visit>
bool each_mapping(Visit visit) {
  Lines lines("/proc/self/maps");
  if (!lines.good()) return false;
  while (const char* line = lines.next()) {
    Mapping mapping;
    if (read_mapping(line, mapping) && mapping.is_programs()) visit(mapping);
  }
  return true;
}

// All lines of the map as it is now, for a walk that changes it. False: it cannot be read, or there
// is no room for so much.
bool read_map(Row<char>& lines);

}  // namespace backstay::image
