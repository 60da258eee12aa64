// Brings a finished file to its place. In this order:
//
// 1. The name: the kernel's for the file at its place, which follows renames of the file and of its
//    folders. A file without a name any more needs no bytes.
// 2. A new file without a name in the same folder, mode 0600: bytes, size, owner, extended
//    attributes, mode, times.
// 3. Synced, if the caller asked.
// 4. It gets a temporary name and is renamed over the old one; the folder is synced, if asked.
//
// A crash before 4 leaves the old file. Only one between the two calls of 4, or on a file system
// that makes no files without a name, leaves a file named .backstay-... beside it.
#include <sys/vfs.h>

#include <cstdio>
#include <cstring>

#include "capture/files/copy.h"
#include "capture/files/exclusive.h"
#include "capture/files/pattern.h"
#include "capture/files/raw.h"
#include "capture/files/sink.h"

namespace backstay::files {
namespace {

// The path of the file that is open as `fd`, and whether that path leads to it.
bool find_name(int fd, const struct stat& file, char (&path)[path_max]) {
  struct stat there = {};
  if (!raw::path_of(fd, path)) return false;
  if (raw::fstatat(AT_FDCWD, path, &there, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return raw::is_same(there, file);
}

// A name beside `path` that no other file of this process has; false: it would be too long.
bool next_name(const char* path, char (&name)[path_max]) {
  const char* slash = std::strrchr(path, '/');
  const auto folder = static_cast<int>(slash - path);
  static unsigned count = 0;  // guarded by the lock
  const int bytes = std::snprintf(name, sizeof(name), "%.*s/.backstay-%d-%u", folder, path,
                                  static_cast<int>(raw::getpid()), ++count);
  return bytes < static_cast<int>(sizeof(name));
}

constexpr int attempts_max = 100;

// A new file beside `path`, for reading and writing. `name` is empty where it has none.
int make_temporary(const char* path, char (&name)[path_max]) {
  if (!next_name(path, name)) return -ENAMETOOLONG;
  *std::strrchr(name, '/') = '\0';
  const int nameless =
      raw::openat(AT_FDCWD, name[0] == '\0' ? "/" : name, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  name[0] = '\0';
  if (nameless != -EOPNOTSUPP && nameless != -EISDIR && nameless != -ENOENT) return nameless;
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    if (!next_name(path, name)) return -ENAMETOOLONG;
    const int fd = raw::openat(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd != -EEXIST) return fd;
  }
  return -EEXIST;
}

// A file that has no name yet gets one. Returns an error number.
int give_name(int fd, const char* path, char (&name)[path_max]) {
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  int error = name[0] != '\0' ? 0 : EEXIST;
  for (int attempt = 0; attempt < attempts_max && error == EEXIST; ++attempt) {
    if (!next_name(path, name)) return ENAMETOOLONG;
    error =
        -static_cast<int>(raw::call(SYS_linkat, AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW));
  }
  if (error != 0) name[0] = '\0';
  return error;
}

void remove_name(const char* name) {
  if (name[0] != '\0') raw::unlink(name);
}

// Those that were set by the file's path while its bytes were in memory. What cannot be set (of
// another user's namespace) is left out.
void copy_attributes(int from, int to) {
  static char names[1 << 16];  // guarded by the lock
  static char value[1 << 16];
  const long all = raw::call(SYS_flistxattr, from, names, sizeof(names));
  for (const char* one = names; all > 0 && one < names + all; one += std::strlen(one) + 1) {
    const long bytes = raw::call(SYS_fgetxattr, from, one, value, sizeof(value));
    if (bytes >= 0) raw::call(SYS_fsetxattr, to, one, value, static_cast<std::size_t>(bytes), 0);
  }
}

// `memory`: as it was before its bytes were read.
int set_times(const struct stat& memory, int to) {
  const struct timespec times[2] = {memory.st_atim, memory.st_mtim};
  return -raw::futimens(to, times);
}

int set_size(int memory, int to) {
  struct stat stat = {};
  if (const int error = -raw::fstat(memory, &stat)) return error;
  return -raw::ftruncate(to, stat.st_size);
}

// All but the rename. Returns an error number.
int fill(const Finished& finished, const struct stat& old, int fd) {
  struct stat memory = {};
  if (const int error = -raw::fstat(finished.memory, &memory)) return error;
  if (const int error = reserve_data(finished.memory, fd)) return error;
  if (const int error = copy_data(finished.memory, fd)) return error;
  if (const int error = set_size(finished.memory, fd)) return error;
  struct stat fresh = {};
  if (const int error = -raw::fstat(fd, &fresh)) return error;
  if (fresh.st_uid != old.st_uid || fresh.st_gid != old.st_gid) {
    if (raw::fchown(fd, old.st_uid, old.st_gid) != 0) return EPERM;
  }
  copy_attributes(finished.target, fd);
  if (const int error = -raw::fchmod(fd, old.st_mode & 07777)) return error;
  set_times(memory, fd);
  return finished.sync ? -raw::fsync(fd) : 0;
}

void sync_folder(char (&path)[path_max]) {
  char* slash = std::strrchr(path, '/');
  slash[1] = '\0';
  const int folder = raw::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  raw::fsync(folder);
  raw::close(folder);
}

Kept replace(const Finished& finished, char (&path)[path_max]) {
  char name[path_max];
  const int fd = copy_beside(finished, path, name);
  if (fd < 0) return {-fd, -1};
  if (const int error = -raw::rename(name, path)) {
    raw::unlink(name);
    raw::close(fd);
    return {error, -1};
  }
  const int placed = finished.goes_on ? open_by_name(fd, path) : -1;
  if (!finished.goes_on) raw::close(fd);
  if (finished.sync) sync_folder(path);
  return {0, placed};
}

// Whether the bytes fit once those that the old file has are given back.
bool fits_without_old(const Finished& finished, const struct stat& old) {
  struct statfs system = {};
  struct stat memory = {};
  if (raw::call(SYS_fstatfs, finished.target, &system) != 0) return false;
  if (raw::fstat(finished.memory, &memory) != 0) return false;
  const auto room = static_cast<unsigned long long>(system.f_bavail) *
                    static_cast<unsigned long long>(system.f_bsize);
  return room + static_cast<unsigned long long>(old.st_blocks) * 512 >=
         static_cast<unsigned long long>(memory.st_blocks) * 512;
}

bool changed_by_others(const Finished& finished, const struct stat& now) {
  const struct stat& then = finished.opened;
  return now.st_size != then.st_size || now.st_mtim.tv_sec != then.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != then.st_mtim.tv_nsec;
}

// Another process wrote into the file while this one had it in memory.
int write_beside_others(const Finished& finished, const struct stat& now) {
  if (const int error = merge_data(finished.memory, finished.target)) return error;
  struct stat memory = {};
  if (const int error = -raw::fstat(finished.memory, &memory)) return error;
  if (memory.st_size <= now.st_size) return 0;
  return -raw::ftruncate(finished.target, memory.st_size);
}

int write_over(const Finished& finished, const struct stat& now, const struct stat& memory) {
  if (now.st_size != 0) {
    if (const int error = -raw::ftruncate(finished.target, 0)) return error;
  }
  if (const int error = reserve_data(finished.memory, finished.target)) return error;
  if (const int error = copy_data(finished.memory, finished.target)) return error;
  if (const int error = set_size(finished.memory, finished.target)) return error;
  set_times(memory, finished.target);
  return 0;
}

// After this a part that was written takes no room, and does not count as another process's writing
// later. The file keeps the time that it had (`before`): the agent would take a newer one for
// another program's.
void take_back(Finished& finished, const struct stat& before) {
  raw::ftruncate(finished.target, 0);
  const struct timespec times[2] = {{0, UTIME_OMIT}, before.st_mtim};
  raw::futimens(finished.target, times);
  raw::fstat(finished.target, &finished.opened);
}

}  // namespace

int copy_beside(const Finished& finished, const char* path, char (&name)[path_max]) {
  struct stat old = {};
  if (const int error = -raw::fstat(finished.target, &old)) return -error;
  const int fd = make_temporary(path, name);
  if (fd < 0) return fd;
  int error = fill(finished, old, fd);
  if (error == 0) error = give_name(fd, path, name);
  if (error == 0) return fd;
  remove_name(name);
  raw::close(fd);
  return -error;
}

int write_in_place(Finished& finished) {
  struct stat now = {};
  struct stat memory = {};
  if (const int error = -raw::fstat(finished.target, &now)) return error;
  if (const int error = -raw::fstat(finished.memory, &memory)) return error;
  int error = 0;
  if (changed_by_others(finished, now) && finished.opened.st_size == 0) {
    error = write_beside_others(finished, now);
  } else {
    error = write_over(finished, now, memory);
    if (error != 0) take_back(finished, now);
  }
  if (error != 0 || !finished.sync) return error;
  error = -raw::fsync(finished.target);
  if (error != 0) raw::fstat(finished.target, &finished.opened);  // it is to be written once more
  return error;
}

bool is_same_file(int one, int other) {
  struct stat first = {};
  struct stat second = {};
  return raw::fstat(one, &first) == 0 && raw::fstat(other, &second) == 0 &&
         raw::is_same(first, second);
}

int open_by_name(int fd, const char* path) {
  const int named = raw::openat(AT_FDCWD, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (named < 0) return fd;
  const bool is_same = is_same_file(fd, named);
  raw::close(is_same ? fd : named);
  return is_same ? named : fd;
}

bool can_be_replaced(const Finished& finished, char (&path)[path_max]) {
  struct stat now = {};
  struct stat memory = {};
  if (raw::fstat(finished.target, &now) != 0 || raw::fstat(finished.memory, &memory) != 0) {
    return false;
  }
  return now.st_nlink == 1 && !changed_by_others(finished, now) &&
         !(now.st_size == 0 && memory.st_size == 0) && find_name(finished.target, now, path) &&
         !open_elsewhere(finished.target);
}

Kept keep_direct(Finished& finished) {
  struct stat now = {};
  if (const int error = -raw::fstat(finished.target, &now)) return {error, -1};
  if (now.st_nlink == 0) return {};
  char path[path_max];
  if (can_be_replaced(finished, path)) {
    const Kept kept = replace(finished, path);
    const bool full = kept.error == ENOSPC || kept.error == EDQUOT;
    // A try to write into the file of such a disk fails as well, and changes its times.
    const bool read_only = kept.error == EROFS;
    if (kept.error == 0 || read_only || (full && !fits_without_old(finished, now))) return kept;
  }
  return {write_in_place(finished), -1};
}

}  // namespace backstay::files
