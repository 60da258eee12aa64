#include "capture/image/boot/contents.h"

#include <linux/mman.h>

#include "capture/files/pattern.h"
#include "capture/image/boot/areas.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/journals.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/window.h"

namespace backstay::image::contents {

namespace {

constexpr uint32_t access_mode = 3;
constexpr uint64_t standard = 3;  // 0, 1, 2: the new process has its own
constexpr uint32_t files_max = 1024;
constexpr uint32_t mode_bits = 0777;
constexpr long seek_data = 3;
constexpr long seek_hole = 4;
constexpr long missing = -2;     // ENOENT
constexpr long behind_all = -6;  // ENXIO

char all_patterns[64 << 10];
Content all[files_max];
uint32_t size = 0;

bool is_open(uint64_t device, uint64_t inode) {
  for (uint32_t i = 0; i < size; ++i) {
    if (all[i].device == device && all[i].inode == inode) return true;
  }
  return false;
}

bool is_wanted(const Tables& tables, const Descriptor& one) {
  return one.kind == static_cast<uint32_t>(DescriptorKind::file) &&
         (one.number >= standard || (one.marks & descriptor_is_own) != 0) &&
         (one.flags & access_mode) != 0 && given_output(one) == 0 &&
         !nameless::is_one(tables, one) && !is_open(one.device, one.inode) &&
         files::matches_any(all_patterns, tables.text(one.path));
}

// An empty file has an area of one page, and no page in the image.
uint64_t area_bytes(uint64_t bytes) {
  return bytes == 0 ? page_bytes : (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

void open_one(const char* from, uint32_t path, const Tables& tables, Trouble& trouble) {
  if (size == files_max) {
    trouble << "more than " << uint64_t{files_max} << " files that it has open fit --capture-files";
    return;
  }
  long fd = sys_open(from, O_RDONLY | O_CLOEXEC);
  FileStatus status;
  if (fd >= 0 && !descriptor_status(fd, status)) fd = missing;
  if (fd < 0) {
    trouble << tables.text(path) << ", whose contents are to be saved (--capture-files), cannot be "
            << "read (error " << -fd << ")";
    return;
  }
  const uint64_t start = size == 0 ? first_place : all[size - 1].end + page_bytes;
  all[size++] = Content{start,        start + area_bytes(status.bytes), status.bytes, status.device,
                        status.inode, status.mode & mode_bits,          path,         fd};
}

void open_descriptor(const Descriptor& one, const Tables& tables, Trouble& trouble) {
  Text link;
  link << "/proc/self/fd/" << uint64_t{one.number};
  open_one(link.c_str(), one.path, tables, trouble);
}

// A restart gives the program each descriptor that it had, and so needs the file, whatever it
// begins with.
bool has_descriptor(const Tables& tables, const FileStatus& file) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.device == file.device && one.inode == file.inode) return true;
  }
  return false;
}

void open_journals(const Content& database, Tables& tables, Trouble& trouble) {
  for (uint32_t kind = 0; kind < journals::kinds && trouble.empty(); ++kind) {
    const char* path = journals::beside(tables.text(database.path), kind);
    FileStatus status;
    if (!link_status(path, status) || !status.is_regular()) continue;
    if (is_open(status.device, status.inode)) continue;
    if (has_descriptor(tables, status) || journals::begins_as_one(path, kind)) {
      open_one(path, tables.add_text(path), tables, trouble);
    }
  }
}

const Content* find(const Area& area) {
  for (uint32_t i = 0; i < size; ++i) {
    if (all[i].start == area.start) return &all[i];
  }
  return nullptr;
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

void open(Tables& tables, Trouble& trouble) {
  if (patterns() == nullptr) return;
  for (const Descriptor& one : tables.descriptors) {
    if (trouble.empty() && is_wanted(tables, one)) open_descriptor(one, tables, trouble);
  }
  const uint32_t databases = size;
  for (uint32_t i = 0; i < databases; ++i) open_journals(all[i], tables, trouble);
}

uint64_t count() { return size; }

const Content& one(uint64_t number) { return all[number]; }

bool next_data(const Content& content, uint64_t& start, uint64_t& end) {
  const auto from = static_cast<long>(start - content.start);
  const auto bytes = static_cast<long>(content.bytes);
  if (from >= bytes) return false;
  long data = system_call(__NR_lseek, content.fd, from, seek_data);
  if (data == behind_all || data >= bytes) return false;
  long hole = data < 0 ? data : system_call(__NR_lseek, content.fd, data, seek_hole);
  if (hole < 0) data = from;
  if (hole < 0 || hole > bytes) hole = bytes;
  start = content.start + (static_cast<uint64_t>(data) & ~(page_bytes - 1));
  end = content.start + area_bytes(static_cast<uint64_t>(hole));
  return true;
}

void close() {
  for (uint32_t i = 0; i < size; ++i) sys_close(all[i].fd);
  size = 0;
}

bool read(const Area& area, uint64_t address, void* to, uint64_t bytes) {
  const Content* content = find(area);
  if (content == nullptr) return false;
  const uint64_t at = address - content->start;
  const uint64_t left = at < content->bytes ? content->bytes - at : 0;
  const uint64_t there = bytes < left ? bytes : left;
  auto* out = static_cast<uint8_t*>(to);
  memset(out + there, 0, bytes - there);
  for (uint64_t done = 0; done < there;) {
    const long got = sys_pread(content->fd, out + done, there - done, at + done);
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  return true;
}

void own(const Tables& tables, Trouble& trouble) {
  for (const Area& area : tables.areas) {
    if (!is_content(area) || !trouble.empty()) continue;
    const uint64_t bytes = area.end - area.start;
    const long at = sys_map(area.start, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    if (at != static_cast<long>(area.start)) {
      trouble << "memory for contents of files cannot be mapped (error " << -at << ")";
      return;
    }
    for (const Run& run : runs_of(tables.runs, area)) {
      if (read(area, run.address, reinterpret_cast<void*>(run.address), bytes_of(run))) continue;
      trouble << "a file became shorter while it was saved";
      return;
    }
  }
}

void compare(const Tables& tables, Trouble& trouble) {
  for (const Area& area : tables.areas) {
    if (!is_content(area)) continue;
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
    if (is_content(area)) return true;
  }
  return false;
}

bool holds(const Tables& tables, const char* path) {
  for (const Area& area : tables.areas) {
    if (is_content(area) && same_text(tables.text(tables.files[area.file].path), path)) return true;
  }
  return false;
}

}  // namespace backstay::image::contents
