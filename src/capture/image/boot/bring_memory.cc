#include <linux/mman.h>

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/vdso.h"

namespace backstay::image {

namespace {

AreaKind kind_of(const Area& area) { return static_cast<AreaKind>(area.kind); }

// A shared mapping may become writable later, so it is opened for writing where that is allowed.
long open_file(const Tables& tables, const Area& area) {
  const char* path = tables.text(tables.files[area.file].path);
  if (kind_of(area) == AreaKind::shared_file) {
    const long fd = sys_open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 || (area.protection & PROT_WRITE) != 0) return fd;
  }
  return sys_open(path, O_RDONLY | O_CLOEXEC);
}

bool map_area(const Tables& tables, const Area& area, bool filled) {
  int flags = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
  long fd = -1;
  const AreaKind kind = kind_of(area);
  if (kind == AreaKind::anonymous) {
    flags |=
        MAP_PRIVATE | MAP_ANONYMOUS | ((area.flags & area_grows_down) != 0 ? MAP_GROWSDOWN : 0);
  } else if (kind == AreaKind::shared_memory) {
    flags |= MAP_SHARED;
    fd = nameless::file(tables, area.object);
  } else {
    flags |= kind == AreaKind::private_file ? MAP_PRIVATE : MAP_SHARED;
    fd = open_file(tables, area);
  }
  if (fd < 0 && kind != AreaKind::anonymous) return false;
  const int protection = filled ? PROT_READ | PROT_WRITE : static_cast<int>(area.protection);
  const long at = sys_map(area.start, area.end - area.start, protection, flags, fd, area.offset);
  if (fd >= 0 && kind != AreaKind::shared_memory) sys_close(fd);
  return at == static_cast<long>(area.start);
}

bool is_mapped_here(const Area& area) {
  return kind_of(area) != AreaKind::vdso && kind_of(area) != AreaKind::vdso_data;
}

// The runs of an area: [first, end) of the table. Both are in the order of addresses.
uint64_t runs_end(const Tables& tables, uint64_t first, const Area& area) {
  while (first < tables.runs.size() && tables.runs[first].address < area.end) ++first;
  return first;
}

}  // namespace

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
  uint64_t first = 0;
  for (const Area& area : tables.areas) {
    const uint64_t end = runs_end(tables, first, area);
    if (is_mapped_here(area)) {
      if (!map_area(tables, area, end > first)) {
        trouble << "the address range at ";
        trouble.hex(area.start) << " cannot be mapped as it was";
      }
    } else if (kind_of(area) == AreaKind::vdso && end > first) {
      keep_room_for_vdso(area, trouble);
    }
    if (!trouble.empty()) return;
    first = end;
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
  uint64_t first = 0;
  for (const Area& area : tables.areas) {
    const uint64_t end = runs_end(tables, first, area);
    const auto wanted = static_cast<int>(area.protection);
    if (is_mapped_here(area) && end > first && wanted != (PROT_READ | PROT_WRITE)) {
      sys_protect(area.start, area.end - area.start, wanted);
    }
    first = end;
  }
}

}  // namespace backstay::image
