// The map: who owns each area, which pages hold something, and which files stand behind it.
#include <linux/mman.h>

#include "capture/image/boot/contents.h"
#include "capture/image/boot/describe.h"
#include "capture/image/boot/elf.h"
#include "capture/image/boot/identify.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/nameless.h"

namespace backstay::image {

namespace {

AreaKind kind_of(const Mapping& mapping, Trouble& trouble) {
  const char* name = mapping.name;
  if (begins_with(name, "[vvar")) return AreaKind::vdso_data;
  if (same_text(name, "[vdso]")) return AreaKind::vdso;
  if (begins_with(name, "/SYSV")) {
    trouble << "System V shared memory at ";
  } else if (begins_with(name, "/[aio]")) {
    trouble << "asynchronous I/O (io_setup) with a ring at ";
  } else if (mapping.shared) {
    const bool memory = begins_with(name, "/dev/zero (deleted)") || begins_with(name, "/memfd:") ||
                        (mapping.is_path() && mapping.is_deleted());
    if (memory) return AreaKind::shared_memory;
    if (mapping.is_path()) return AreaKind::shared_file;
    trouble << "a mapping that has no owner (" << name << ") at ";
  } else {
    if (mapping.is_path()) {
      return mapping.is_deleted() ? AreaKind::anonymous : AreaKind::private_file;
    }
    if (name[0] == 0 || same_text(name, "[heap]") || begins_with(name, "[stack") ||
        begins_with(name, "[anon")) {
      return AreaKind::anonymous;
    }
    trouble << "a mapping that has no owner (" << name << ") at ";
  }
  trouble.hex(mapping.start) << " cannot be saved";
  return AreaKind::anonymous;
}

uint32_t file_of(const Mapping& mapping, Tables& tables, Trouble& trouble) {
  for (uint32_t i = 0; i < tables.files.size(); ++i) {
    if (same_text(tables.text(tables.files[i].path), mapping.name)) return i;
  }
  FileStatus status;
  if (!file_status(mapping.name, status) || status.inode != mapping.inode) {
    trouble << mapping.name << " was replaced or removed while the program has it mapped";
    return no_index;
  }
  if (!status.is_regular()) {
    trouble << mapping.name << " is a device, and the program has its memory mapped";
    return no_index;
  }
  File* file = tables.files.add();
  if (file == nullptr) {
    trouble << "more files are mapped than an image can name";
    return no_index;
  }
  identify(mapping.name, status, !mapping.shared, *file, trouble);
  file->path = tables.add_text(mapping.name);
  return static_cast<uint32_t>(tables.files.size() - 1);
}

// The number of a file without a name. The map and stat() may name different devices if file
// systems lie above each other: the number is of stat()'s, as the descriptors have that.
uint64_t object_of(const Mapping& mapping, const Tables& tables) {
  uint64_t device = mapping.device;
  for (const Descriptor& one : tables.descriptors) {
    const bool same = one.inode == mapping.inode && same_text(tables.text(one.path), mapping.name);
    if (same && nameless::is_one(tables, one)) device = one.device;
  }
  return nameless::number_of(device, mapping.inode);
}

bool has_file(AreaKind kind) {
  return kind == AreaKind::private_file || kind == AreaKind::shared_file;
}

bool may_be_written(const Area& area) { return (area.protection & PROT_WRITE) != 0; }

// The kernel tells by trying whether the file was opened for writing.
bool may_become_writable(const Area& area) {
  const uint64_t bytes = area.end - area.start;
  const int now = static_cast<int>(area.protection);
  if (sys_protect(area.start, bytes, now | PROT_WRITE) != 0) return false;
  sys_protect(area.start, bytes, now);
  return true;
}

// What the program writes into a shared file after the cut must be undone: its pages come back too.
// Behind the file's end there is nothing that could be read. Pages that it may only read now do not
// come back: a database that is mapped to be read (LMDB) is large, and is other programs' as well.
void add_shared_pages(Area& mapped, Tables& tables, Trouble& trouble) {
  const uint64_t bytes = tables.files[mapped.file].bytes;
  if (!may_be_written(mapped)) {
    if (may_become_writable(mapped)) mapped.flags |= area_may_be_written;
    return;
  }
  if (bytes <= mapped.offset) return;
  Area area = mapped;
  const uint64_t end =
      area.start + (bytes - area.offset + page_bytes - 1) / page_bytes * page_bytes;
  if (end < area.end) area.end = end;
  find_pages(area, Which::whole, Watching::off, tables.runs, trouble);
}

void add_area(const Mapping& mapping, Tables& tables, Watching watching, Trouble& trouble) {
  const AreaKind kind = kind_of(mapping, trouble);
  const uint32_t file =
      trouble.empty() && has_file(kind) ? file_of(mapping, tables, trouble) : no_index;
  if (!trouble.empty()) return;
  Area* area = tables.areas.add();
  if (area == nullptr) {
    trouble << "the map has more areas than an image can hold";
    return;
  }
  area->start = mapping.start;
  area->end = mapping.end;
  area->offset = kind == AreaKind::anonymous ? 0 : mapping.offset;
  area->object = kind == AreaKind::shared_memory ? object_of(mapping, tables) : 0;
  area->kind = static_cast<uint32_t>(kind);
  area->protection = mapping.protection;
  area->flags = same_text(mapping.name, "[stack]") ? area_grows_down : 0;
  if (contents::is_one(mapping.start)) area->flags |= area_is_content;
  area->file = file;
  if (kind == AreaKind::shared_file) add_shared_pages(*area, tables, trouble);
  const Which which = kind == AreaKind::private_file ? Which::changed : Which::present;
  const bool all = kind == AreaKind::shared_memory || kind == AreaKind::vdso ||
                   (kind == AreaKind::anonymous && mapping.is_path());
  if (kind == AreaKind::shared_file || kind == AreaKind::vdso_data) return;
  find_pages(*area, all ? Which::all : which, watching, tables.runs, trouble);
}

}  // namespace

void learn_files() {
  each_mapping([](const Mapping& mapping) {
    FileStatus status;
    File file{};
    Trouble ignored;
    if (!mapping.is_path() || !file_status(mapping.name, status)) return;
    if (!status.is_regular() || status.inode != mapping.inode) return;
    identify(mapping.name, status, !mapping.shared, file, ignored);
  });
}

void describe_areas(Tables& tables, Watching watching, Trouble& trouble) {
  const bool read = each_mapping([&](const Mapping& mapping) {
    if (trouble.empty()) add_area(mapping, tables, watching, trouble);
  });
  if (!read && trouble.empty()) trouble << "/proc/self/maps cannot be read";
}

}  // namespace backstay::image
