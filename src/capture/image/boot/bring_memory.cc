#include <linux/mman.h>

#include "capture/image/boot/areas.h"
#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/vdso.h"

namespace backstay::image {

namespace {

AreaKind kind_of(const Area& area) { return static_cast<AreaKind>(area.kind); }

// A shared mapping that could become writable still can, where the file may be opened so.
long open_file(const Tables& tables, const Area& area) {
  const char* path = tables.text(tables.files[area.file].path);
  const bool writes = kind_of(area) == AreaKind::shared_file && (area.protection & PROT_WRITE) != 0;
  if (writes || (area.flags & area_may_become_writable) != 0) {
    const long fd = sys_open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 || writes) return fd;
  }
  return sys_open(path, O_RDONLY | O_CLOEXEC);
}

bool has_file(const Area& area) {
  const AreaKind kind = kind_of(area);
  return kind == AreaKind::private_file || kind == AreaKind::shared_file;
}

// The file behind the area is missing, shorter or another one until its contents are written back.
bool waits_for_contents(const Tables& tables, const Area& area) {
  return has_file(area) && contents::any(tables) &&
         contents::holds(tables, tables.text(tables.files[area.file].path));
}

bool map_area(const Tables& tables, const Area& area, int protection) {
  int flags = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
  long fd = -1;
  const AreaKind kind = kind_of(area);
  if (kind == AreaKind::anonymous) {
    flags |=
        MAP_PRIVATE | MAP_ANONYMOUS | ((area.flags & area_grows_down) != 0 ? MAP_GROWSDOWN : 0);
  } else if (waits_for_contents(tables, area)) {
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;  // until all is there
  } else if (kind == AreaKind::shared_memory) {
    flags |= MAP_SHARED;
    fd = nameless::file(tables, area.object);
  } else {
    flags |= kind == AreaKind::private_file ? MAP_PRIVATE : MAP_SHARED;
    fd = open_file(tables, area);
  }
  if (fd < 0 && (flags & MAP_ANONYMOUS) == 0) return false;
  const long at = sys_map(area.start, area.end - area.start, protection, flags, fd, area.offset);
  if (fd >= 0 && kind != AreaKind::shared_memory) sys_close(fd);
  return at == static_cast<long>(area.start);
}

constexpr int to_be_filled = PROT_READ | PROT_WRITE;

bool touches(const Area& area, const Area& next) {
  return kind_of(area) == AreaKind::anonymous && kind_of(next) == AreaKind::anonymous &&
         area.end == next.start;
}

// An area that has no page, between two others of one mapping of the program's (mprotect). The
// kernel makes one mapping of all three again only if they are one before their first pages are
// there; else the program could not move or resize it any more (mremap). One that may not even be
// read is a guard, or room that is kept: nothing is to be joined there.
bool joins_others(const Tables& tables, const Area& area) {
  const bool inner = &area != tables.areas.begin() && &area + 1 != tables.areas.end();
  return inner && (area.protection & PROT_READ) != 0 && touches(*(&area - 1), area) &&
         touches(area, *(&area + 1));
}

bool map_as_it_was(const Tables& tables, const Area& area, bool filled) {
  if (filled) return map_area(tables, area, to_be_filled);
  // The kernel may have no room for so much that may be written.
  if (joins_others(tables, area) && map_area(tables, area, to_be_filled)) return true;
  return map_area(tables, area, static_cast<int>(area.protection));
}

bool is_mapped_here(const Area& area) {
  return kind_of(area) != AreaKind::vdso && kind_of(area) != AreaKind::vdso_data;
}

// Maps the file elsewhere, with the pages that the program has changed, and moves it to its place.
// A shared mapping has its pages from the file.
long map_in_place(const Tables& tables, const Area& area) {
  constexpr long move_to = 3;  // MREMAP_MAYMOVE | MREMAP_FIXED
  const bool is_private = kind_of(area) == AreaKind::private_file;
  const Runs runs = runs_of(tables.runs, area);
  const bool fills = is_private && !runs.empty();
  const uint64_t bytes = area.end - area.start;
  const long fd = open_file(tables, area);
  if (fd < 0) return fd;
  const long at = sys_map(0, bytes, fills ? to_be_filled : static_cast<int>(area.protection),
                          (is_private ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE, fd, area.offset);
  sys_close(fd);
  if (at < 0) return at;
  if (fills) {
    for (const Run& run : runs) {
      memcpy(reinterpret_cast<uint8_t*>(at) + (run.address - area.start),
             reinterpret_cast<const void*>(run.address), bytes_of(run));
    }
  }
  const long moved = system_call(__NR_mremap, at, static_cast<long>(bytes),
                                 static_cast<long>(bytes), move_to, static_cast<long>(area.start));
  return moved < 0 ? moved : 0;
}

}  // namespace

void map_written_files(const Tables& tables, Trouble& trouble) {
  if (!contents::any(tables)) return;
  for (const Area& area : tables.areas) {
    if (is_content(area) || !waits_for_contents(tables, area)) continue;
    const long failed = map_in_place(tables, area);
    if (failed == 0) continue;
    trouble << tables.text(tables.files[area.file].path) << " cannot be mapped (error " << -failed
            << ")";
    return;
  }
}

void clear_memory() {
  keep_vdso();
  // The map changes while it is read, so it is read again until nothing is left.
  for (bool found = true; found;) {
    found = false;
    Mapping one;
    each_mapping([&](const Mapping& mapping) {
      if (!found) one = mapping;
      found = true;
    });
    if (found && sys_unmap(one.start, one.end - one.start) != 0) return;
  }
}

void map_areas(const Tables& tables, Trouble& trouble) {
  raise_descriptor_limit();  // each file without a name has one until all areas are mapped
  for (const Area& area : tables.areas) {
    const bool filled = !runs_of(tables.runs, area).empty();
    if (is_mapped_here(area)) {
      if (!map_as_it_was(tables, area, filled)) {
        trouble << "the address range at ";
        trouble.hex(area.start) << " cannot be mapped as it was";
      }
    } else if (kind_of(area) == AreaKind::vdso && filled) {
      keep_room_for_vdso(area, trouble);
    }
    if (!trouble.empty()) return;
  }
  nameless::close_unopened(tables);
  lower_descriptor_limit();
}

uint8_t* place_of(const Tables& tables, const Run& run) {
  static const Area* vdso = nullptr;
  if (vdso == nullptr) {
    vdso = tables.areas.end();
    for (const Area& area : tables.areas) {
      if (kind_of(area) == AreaKind::vdso) vdso = &area;
    }
  }
  const bool is_vdso =
      vdso != tables.areas.end() && run.address >= vdso->start && run.address < vdso->end;
  return is_vdso ? room_for_vdso(run.address - vdso->start)
                 : reinterpret_cast<uint8_t*>(run.address);
}

void protect_areas(const Tables& tables) {
  for (const Area& area : tables.areas) {
    const auto wanted = static_cast<int>(area.protection);
    if (!is_mapped_here(area) || wanted == to_be_filled) continue;
    if (!runs_of(tables.runs, area).empty() || joins_others(tables, area)) {
      sys_protect(area.start, area.end - area.start, wanted);
    }
  }
}

}  // namespace backstay::image
