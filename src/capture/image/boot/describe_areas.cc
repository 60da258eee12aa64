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

// Of a file that is mapped, or whose contents the image has.
uint32_t file_at(const char* path, uint64_t inode, bool content, Tables& tables, Trouble& trouble) {
  for (uint32_t i = 0; i < tables.files.size(); ++i) {
    if (same_text(tables.text(tables.files[i].path), path)) return i;
  }
  FileStatus status;
  if (!file_status(path, status) || status.inode != inode) {
    trouble << path << " was replaced or removed while the program has it mapped";
    return no_index;
  }
  if (!status.is_regular()) {
    trouble << path << " is a device, and the program has its memory mapped";
    return no_index;
  }
  File* file = tables.files.add();
  if (file == nullptr) {
    trouble << "more files are mapped than an image can name";
    return no_index;
  }
  identify(path, status, content, *file, trouble);
  file->path = tables.add_text(path);
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

// The kernel refuses such a protection of all others. It is the one that the area has.
bool grows_down(const Area& area) {
  constexpr uint32_t and_below = 0x01000000;  // PROT_GROWSDOWN
  return sys_protect(area.start, area.end - area.start,
                     static_cast<int>(area.protection | and_below)) == 0;
}

bool has_file(AreaKind kind) {
  return kind == AreaKind::private_file || kind == AreaKind::shared_file;
}

// The kernel tells by trying whether the file was opened for writing.
bool may_become_writable(const Area& area, Trouble& trouble) {
  const uint64_t bytes = area.end - area.start;
  const int now = static_cast<int>(area.protection);
  if (sys_protect(area.start, bytes, now | PROT_WRITE) != 0) return false;
  const long failed = sys_protect(area.start, bytes, now);
  if (failed != 0) {
    trouble << "a mapping cannot be protected as it was (error " << -failed << ")";
  }
  return true;
}

// What the program writes into a shared file after the cut must be undone: its pages come back too.
// Behind the file's end there is nothing that could be read. Pages that it may only read now do not
// come back: a database that is mapped to be read (LMDB) is large, and is other programs' as well.
void add_shared_pages(Area& mapped, Tables& tables, Trouble& trouble) {
  const uint64_t bytes = tables.files[mapped.file].bytes;
  if ((mapped.protection & PROT_WRITE) == 0) {
    if (may_become_writable(mapped, trouble)) mapped.flags |= area_may_become_writable;
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
  const uint32_t file = trouble.empty() && has_file(kind)
                            ? file_at(mapping.name, mapping.inode, !mapping.shared, tables, trouble)
                            : no_index;
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
  area->flags = kind == AreaKind::anonymous && grows_down(*area) ? area_grows_down : 0;
  area->file = file;
  if (kind == AreaKind::shared_file) add_shared_pages(*area, tables, trouble);
  const Which which = kind == AreaKind::private_file ? Which::changed : Which::present;
  const bool all = kind == AreaKind::shared_memory || kind == AreaKind::vdso ||
                   (kind == AreaKind::anonymous && mapping.is_path());
  if (kind == AreaKind::shared_file || kind == AreaKind::vdso_data) return;
  find_pages(*area, all ? Which::all : which, watching, tables.runs, trouble);
}

void add_content(const contents::Content& content, Tables& tables, Trouble& trouble) {
  const uint32_t file =
      file_at(tables.text(content.path), content.inode, /*content=*/false, tables, trouble);
  if (trouble.empty() && tables.files[file].bytes != content.bytes) {
    trouble << tables.text(content.path) << " was changed by another process while it was saved";
  }
  Area* area = trouble.empty() ? tables.areas.add() : nullptr;
  if (area == nullptr) {
    if (trouble.empty()) trouble << "the map has more areas than an image can hold";
    return;
  }
  *area = Area{};
  area->start = content.start;
  area->end = content.end;
  area->object = content.mode;
  area->kind = static_cast<uint32_t>(AreaKind::shared_file);
  area->protection = PROT_READ | PROT_WRITE;
  area->flags = area_is_content;
  area->file = file;
  Area data = *area;
  while (trouble.empty() && contents::next_data(content, data.start, data.end)) {
    find_pages(data, Which::whole, Watching::off, tables.runs, trouble);
    data.start = data.end;
  }
}

void add_contents(Tables& tables, Trouble& trouble) {
  for (uint64_t i = 0; i < contents::count() && trouble.empty(); ++i) {
    add_content(contents::one(i), tables, trouble);
  }
}

// Areas are in the order of addresses.
class ContentsBetween {
 public:
  explicit ContentsBetween(Tables& tables) : tables_(tables) {}
  void before(uint64_t start, Trouble& trouble) {
    if (added_ || start < contents::first_place || contents::count() == 0) return;
    added_ = true;
    if (start < contents::one(contents::count() - 1).end) {
      trouble << "the files that fit --capture-files are too large together, or the program has "
              << "memory mapped where an image names their contents";
    }
    if (trouble.empty()) add_contents(tables_, trouble);
  }

 private:
  Tables& tables_;
  bool added_ = false;
};

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

// To look for pages changes the map: mappings that are watched alike become one. So it is read
// whole before.
void describe_areas(Tables& tables, Watching watching, Trouble& trouble) {
  constexpr uint64_t room = 64 << 20;
  Row<char> map;
  map.begin(room);
  if (!read_map(map)) {
    trouble << "/proc/self/maps cannot be read, or is too long";
    return;
  }
  ContentsBetween contents(tables);
  static Mapping mapping;
  for (char* line = map.begin(); trouble.empty() && line != map.end();) {
    char* end = line;
    while (end + 1 != map.end() && *end != '\n') ++end;
    *end = 0;
    const bool counts = read_mapping(line, mapping) && mapping.is_programs();
    line = end + 1;
    if (!counts) continue;
    if (trouble.empty()) contents.before(mapping.start, trouble);
    if (trouble.empty()) add_area(mapping, tables, watching, trouble);
  }
  if (trouble.empty()) contents.before(UINT64_MAX, trouble);
}

}  // namespace backstay::image
