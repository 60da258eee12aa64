// Opening: which files come into memory, and how. In this order:
//
// 1. The file is opened natively at the path that the program gave, with its flags but O_TRUNC. So
//    the kernel decides as ever: what exists, who may, which number the descriptor gets. A new file
//    stands empty at its place from now on; an old one keeps its bytes until the new ones replace
//    them.
// 2. That descriptor gets a second, high number, unseen by the program: the real descriptor.
// 3. A memory file is made, and opened with the program's access mode, onto the program's number.
//
// Where a step fails, the program goes on with the descriptor of step 1, truncated if it asked.
#include <linux/magic.h>
#include <sys/vfs.h>

#include "capture/files/capture.h"
#include "capture/files/counts.h"
#include "capture/files/descriptors.h"
#include "capture/files/exclusive.h"
#include "capture/files/export.h"
#include "capture/files/leave.h"
#include "capture/files/memory_room.h"
#include "capture/files/pattern.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"
#include "capture/files/rules.h"
#include "capture/files/settings.h"

namespace backstay::files {
namespace {

Settings settings;
std::atomic<unsigned long long> written_since_check;

bool folder_path(int folder, char (&path)[path_max]) {
  if (folder == AT_FDCWD) return raw::call(SYS_getcwd, path, sizeof(path)) > 0;
  return raw::path_of(folder, path);
}

bool is_captured_path(int folder, const char* path) {
  if (settings.patterns.empty() || path == nullptr) return false;
  char base[path_max] = "";
  if (path[0] != '/' && !folder_path(folder, base)) return false;
  PathText whole;
  return make_absolute(base, path, whole) && matches_any(settings.patterns, whole.view());
}

bool is_ordinary_system(int fd) {
  struct statfs system = {};
  if (raw::call(SYS_fstatfs, fd, &system) != 0) return false;
  switch (system.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC: return false;
    default: return true;
  }
}

bool has_attributes(int fd) { return raw::call(SYS_flistxattr, fd, nullptr, 0) > 0; }

unsigned long long memory_used() {
  unsigned long long bytes = 0;
  for (MemoryFile* file = table().first_file(); file != nullptr; file = table().next_file(*file)) {
    struct stat stat = {};
    if (raw::fstat(file->memory, &stat) == 0) {
      bytes += static_cast<unsigned long long>(stat.st_blocks) * 512;
    }
  }
  return bytes;
}

// The memory file gets the program's number `fd`; `real` stands behind it.
int bind_memory(int fd, MemoryFile& file, int real, int flags) {
  const int user = reopen(file.memory, memory_flags(flags));
  if (user < 0) return -user;
  Opening* opening = table().add_opening(file, real, flags);
  if (opening == nullptr) {
    raw::close(user);
    return EMFILE;
  }
  const int bound = put_at_number(user, fd, flags & O_CLOEXEC);
  raw::close(user);
  if (bound < 0) {
    table().remove(*opening);
    return -bound;
  }
  table().bind(fd, *opening);
  return 0;
}

int begin(int fd, const struct stat& placed, int flags) {
  if (memory_used() >= settings.memory_bytes_max) return ENOMEM;
  MemoryFile* file = table().add_file();
  if (file == nullptr) return ENFILE;
  const int real = keep_descriptor(table(), fd);
  file->target = keep_descriptor(table(), fd);
  file->memory = move_descriptor(table(), raw::memfd("backstay"));
  file->placed = placed;
  file->synced = 0;
  file->hold = -1;
  int error = real < 0 || file->target < 0 || file->memory < 0 ? EMFILE : 0;
  if (error == 0) {
    const struct timespec times[2] = {placed.st_atim, {0, UTIME_OMIT}};
    raw::futimens(file->memory, times);
    error = -raw::fstat(file->memory, &file->memory_stat);
  }
  if (error == 0) error = bind_memory(fd, *file, real, flags);
  if (error == 0) return 0;
  close_descriptor(table(), real);
  close_descriptor(table(), file->target);
  close_descriptor(table(), file->memory);
  return error;
}

// Another opening of a file that this process has in memory.
int join(int fd, const struct stat& found, MemoryFile& file, int flags) {
  const bool is_memory = raw::is_same(found, file.memory_stat);
  const int real =
      is_memory
          ? move_descriptor(table(), reopen(file.target, flags & ~(O_CREAT | O_EXCL | O_TRUNC)))
          : keep_descriptor(table(), fd);
  const int error = real < 0 ? -real : bind_memory(fd, file, real, flags);
  if (error == 0) return (flags & O_TRUNC) != 0 ? -raw::ftruncate(file.memory, 0) : 0;
  close_descriptor(table(), real);
  if (const int failed = make_real(file)) return failed;
  return (flags & O_TRUNC) != 0 ? -raw::ftruncate(fd, 0) : 0;
}

int failed_open(int fd, int error) {
  raw::close(fd);
  errno = error;
  return -1;
}

// `fd` is open natively, without having been truncated.
int settle_open(int fd, int flags, bool candidate) {
  Lock lock;
  struct stat placed = {};
  if (raw::fstat(fd, &placed) != 0) return fd;
  if (MemoryFile* file = table().at_inode(placed.st_dev, placed.st_ino)) {
    const int error = join(fd, placed, *file, flags);
    return error == 0 ? fd : failed_open(fd, error);
  }
  if (candidate && fd < descriptors_max) {
    const Found found = {placed, is_ordinary_system(fd), open_elsewhere(fd)};
    const bool allowed = !has_attributes(fd) && file_allows(found, flags);
    if (allowed && begin(fd, placed, flags) == 0) return fd;
    if (!allowed) count_native();
  }
  if ((flags & O_TRUNC) == 0 || !S_ISREG(placed.st_mode)) return fd;
  const int error = -raw::ftruncate(fd, 0);
  return error == 0 ? fd : failed_open(fd, error);
}

// Natively, without truncation. A number that the table still has was closed unseen; that file
// comes home first. Where it was the one that is opened, the descriptor leads to what it replaced.
int open_native(int folder, const char* path, int flags, mode_t mode) {
  flags &= ~O_TRUNC;
  int fd = next_openat(folder, path, flags, mode);
  while (fd >= 0 && table().find(fd) != nullptr) {
    {
      Lock lock;
      end_unseen(fd);
    }
    struct stat now = {};
    if (raw::fstat(fd, &now) != 0 || now.st_nlink != 0) break;
    raw::close(fd);
    fd = next_openat(folder, path, flags & ~O_EXCL, mode);
  }
  return fd;
}

// This process has files in memory, and the path may be one of them.
int open_beside(int folder, const char* path, int flags, mode_t mode) {
  const int look = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  bool known = false;
  {
    Lock lock;
    MemoryFile* file = file_at_path(folder, path, look);
    known = file != nullptr;
    // Also O_PATH: such a descriptor would lead to the file that a rename replaces.
    const bool truncates_unseen = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY;
    if (known && (!flags_can_join(flags) || truncates_unseen)) {
      make_real(*file);
      known = false;
    }
  }
  if (!known) return next_openat(folder, path, flags, mode);
  const int fd = open_native(folder, path, flags, mode);
  return fd < 0 ? fd : settle_open(fd, flags, false);
}

// The file that was opened natively for writing is pending all the same: another process has closed
// it in between, and what this one wrote would be replaced.
bool was_pending(int fd, int flags) {
  if ((flags & O_ACCMODE) == O_RDONLY || (flags & (O_EXCL | O_PATH)) != 0) return false;
  struct stat found = {};
  if (!is_anything_pending() || raw::fstat(fd, &found) != 0) return false;
  return is_pending(found) && table().find(fd) == nullptr;
}

int open_settled(int folder, const char* path, int flags, mode_t mode) {
  const bool fits = flags_write(flags) && is_captured_path(folder, path);
  const bool candidate = fits && flags_allow(flags);
  if (fits && !candidate) count_native();
  if ((!candidate && table().empty()) || !is_owner()) {
    return next_openat(folder, path, flags, mode);
  }
  if (!candidate) return open_beside(folder, path, flags, mode);
  const CountedWait waits(Waited::open);
  const int fd = open_native(folder, path, flags, mode);
  return fd < 0 ? fd : settle_open(fd, flags, true);
}

}  // namespace

int open_file(int folder, const char* path, int flags, mode_t mode) {
  constexpr int attempts = 10;
  const int look = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  const bool reads = (flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC) == 0;
  for (int attempt = 0;; ++attempt) {
    const bool folder_only = (flags & O_DIRECTORY) != 0;
    if (!folder_only && settle_file(folder, path, look, reads) != 0) return answer(EIO);
    const int fd = open_settled(folder, path, flags, mode);
    if (fd < 0 || attempt == attempts || !was_pending(fd, flags)) return fd;
    raw::close(fd);
  }
}

void expect_write(int fd, unsigned long long bytes) {
  constexpr unsigned long long step = 4 << 20;
  if (table().find(fd) == nullptr || written_since_check.fetch_add(bytes) + bytes < step) return;
  if (!is_owner()) return;
  Lock lock;
  written_since_check = 0;
  // The program's own memory may have grown since the start.
  const bool full = memory_used() + bytes > settings.memory_bytes_max;
  if (!full && control_group_has(4 * step + bytes)) return;
  const CountedWait waits(Waited::room);
  make_all_real();
}

void start_capture() {
  settings = read_settings();
  take_ownership();
}

}  // namespace backstay::files
