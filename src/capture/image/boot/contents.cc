#include "capture/image/boot/contents.h"

#include <linux/mman.h>

#include "capture/files/pattern.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/window.h"

namespace backstay::image::contents {

namespace {

constexpr uint32_t access_mode = 3;
constexpr uint64_t standard = 3;  // 0, 1, 2: the new process has its own
// Far from where programs map anything, so that no area of the program's touches one of ours.
constexpr uint64_t first_place = lower::range_end + (1ULL << 40);
constexpr uint64_t step = 1ULL << 30;
constexpr int steps_max = 1024;
constexpr uint32_t files_max = 1024;

char all_patterns[64 << 10];

struct Mapped {
  uint64_t start, bytes;
  uint64_t device, inode;
};
Mapped mapped[files_max];
uint32_t count = 0;

uint64_t page_up(uint64_t at) { return (at + page_bytes - 1) & ~(page_bytes - 1); }

bool is_mapped(const Descriptor& one) {
  for (uint32_t i = 0; i < count; ++i) {
    if (mapped[i].device == one.device && mapped[i].inode == one.inode) return true;
  }
  return false;
}

bool is_wanted(const Tables& tables, const Descriptor& one) {
  return one.kind == static_cast<uint32_t>(DescriptorKind::file) && one.number >= standard &&
         (one.flags & access_mode) != 0 && one.bytes > 0 && !nameless::is_one(tables, one) &&
         !is_mapped(one) && files::matches_any(all_patterns, tables.text(one.path));
}

// The kernel's answer to the first place that is free.
long map_somewhere(long fd, uint64_t bytes) {
  long at = -1;
  uint64_t place = count == 0
                       ? first_place
                       : page_up(mapped[count - 1].start + mapped[count - 1].bytes) + page_bytes;
  for (int i = 0; i < steps_max; ++i, place += step) {
    at = sys_map(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd);
    if (at != -17 /* EEXIST */) break;
  }
  return at;
}

void map_one(const Tables& tables, const Descriptor& one, Trouble& trouble) {
  Text link;
  link << "/proc/self/fd/" << uint64_t{one.number};
  const long fd = sys_open(link.c_str(), O_RDWR | O_CLOEXEC);
  const long at = fd < 0               ? fd
                  : count == files_max ? -24 /* EMFILE */
                                       : map_somewhere(fd, one.bytes);
  if (fd >= 0) sys_close(fd);
  if (at < 0) {
    trouble << tables.text(one.path)
            << ", whose contents are to be saved (--capture-files), cannot "
            << "be mapped (error " << -at << ")";
    return;
  }
  mapped[count++] = Mapped{static_cast<uint64_t>(at), one.bytes, one.device, one.inode};
}

}  // namespace

void fit(const char* patterns, Trouble& trouble) {
  if (patterns == nullptr) return;
  if (strlen(patterns) >= sizeof all_patterns) {
    trouble << "the patterns of files are longer than " << sizeof all_patterns - 1 << " bytes";
    return;
  }
  copy_text(all_patterns, sizeof all_patterns, patterns);
}

const char* patterns() { return all_patterns[0] == 0 ? nullptr : all_patterns; }

void map(const Tables& tables, Trouble& trouble) {
  if (patterns() == nullptr) return;
  for (const Descriptor& one : tables.descriptors) {
    if (trouble.empty() && is_wanted(tables, one)) map_one(tables, one, trouble);
  }
}

bool is_one(uint64_t start) {
  for (uint32_t i = 0; i < count; ++i) {
    if (mapped[i].start == start) return true;
  }
  return false;
}

void unmap() {
  for (uint32_t i = 0; i < count; ++i) sys_unmap(mapped[i].start, page_up(mapped[i].bytes));
  count = 0;
}

void compare(const Tables& tables, Trouble& trouble) {
  for (const Area& area : tables.areas) {
    if ((area.flags & area_is_content) == 0) continue;
    const File& file = tables.files[area.file];
    FileStatus now;
    if (file_status(tables.text(file.path), now) && now.bytes == file.bytes &&
        now.mtime_ns == file.mtime_ns) {
      continue;
    }
    trouble << tables.text(file.path) << " was changed by another process while it was saved";
    return;
  }
}

bool any(const Tables& tables) {
  for (const Area& area : tables.areas) {
    if ((area.flags & area_is_content) != 0) return true;
  }
  return false;
}

bool holds(const Tables& tables, const char* path) {
  for (const Area& area : tables.areas) {
    const bool content = (area.flags & area_is_content) != 0;
    if (content && same_text(tables.text(tables.files[area.file].path), path)) return true;
  }
  return false;
}

long open(const Tables& tables, const Area& area) {
  const File& file = tables.files[area.file];
  const long fd = sys_open(tables.text(file.path), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return fd;
  const auto bytes = static_cast<long>(file.bytes);
  long failed = system_call(__NR_ftruncate, fd, bytes);
  // Where the disk is full, that is an error here, and no signal when a page is written.
  if (failed == 0) failed = system_call(__NR_fallocate, fd, 0, 0, bytes);
  if (failed == 0 || failed == -95 /* EOPNOTSUPP */) return fd;
  sys_close(fd);
  return failed;
}

}  // namespace backstay::image::contents
