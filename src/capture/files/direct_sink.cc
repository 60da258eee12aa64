// Brings a finished file to its place. In this order:
//
// 1. The name: the kernel's for the file at its place, which follows renames of the file and of its
//    folders. A file without a name any more needs no bytes.
// 2. A new file beside it, under a temporary name, mode 0600: bytes, size, owner, mode, times.
// 3. Synced, if the caller asked.
// 4. Renamed over the old one; the folder synced, if asked.
//
// A crash before 4 leaves the old file, and a file named .backstay-... beside it.
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
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const long bytes = raw::readlink(link, path, sizeof(path) - 1);
  if (bytes <= 0) return false;
  path[bytes] = '\0';
  struct stat there = {};
  if (raw::fstatat(AT_FDCWD, path, &there, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return there.st_dev == file.st_dev && there.st_ino == file.st_ino;
}

// A new file beside `path`, for reading and writing.
int make_temporary(const char* path, char (&name)[path_max]) {
  const char* slash = std::strrchr(path, '/');
  const auto folder = static_cast<int>(slash - path);
  static unsigned count = 0;  // guarded by the lock
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int bytes = std::snprintf(name, sizeof(name), "%.*s/.backstay-%d-%u", folder, path,
                                    static_cast<int>(raw::getpid()), ++count);
    if (bytes >= static_cast<int>(sizeof(name))) return -ENAMETOOLONG;
    const int fd = raw::openat(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd != -EEXIST) return fd;
  }
  return -EEXIST;
}

int set_times(int memory, int to) {
  struct stat stat = {};
  if (const int error = -raw::fstat(memory, &stat)) return error;
  const struct timespec times[2] = {stat.st_atim, stat.st_mtim};
  return -raw::futimens(to, times);
}

int set_size(int memory, int to) {
  struct stat stat = {};
  if (const int error = -raw::fstat(memory, &stat)) return error;
  return -raw::ftruncate(to, stat.st_size);
}

// All but the rename. Returns an error number.
int fill(const Finished& finished, const struct stat& old, int fd) {
  if (const int error = reserve_data(finished.memory, fd)) return error;
  if (const int error = copy_data(finished.memory, fd)) return error;
  if (const int error = set_size(finished.memory, fd)) return error;
  struct stat fresh = {};
  if (const int error = -raw::fstat(fd, &fresh)) return error;
  if (fresh.st_uid != old.st_uid || fresh.st_gid != old.st_gid) {
    if (raw::fchown(fd, old.st_uid, old.st_gid) != 0) return EPERM;
  }
  if (const int error = -raw::fchmod(fd, old.st_mode & 07777)) return error;
  set_times(finished.memory, fd);
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
  if (finished.sync) sync_folder(path);
  return {0, fd};
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

}  // namespace

int copy_beside(const Finished& finished, const char* path, char (&name)[path_max]) {
  struct stat old = {};
  if (const int error = -raw::fstat(finished.target, &old)) return -error;
  const int fd = make_temporary(path, name);
  if (fd < 0) return fd;
  const int error = fill(finished, old, fd);
  if (error == 0) return fd;
  raw::unlink(name);
  raw::close(fd);
  return -error;
}

int write_in_place(const Finished& finished) {
  struct stat now = {};
  if (const int error = -raw::fstat(finished.target, &now)) return error;
  int error = 0;
  if (changed_by_others(finished, now) && finished.opened.st_size == 0) {
    error = write_beside_others(finished, now);
  } else {
    if (now.st_size != 0) error = -raw::ftruncate(finished.target, 0);
    if (error == 0) error = reserve_data(finished.memory, finished.target);
    if (error == 0) error = copy_data(finished.memory, finished.target);
    if (error == 0) error = set_size(finished.memory, finished.target);
    if (error == 0) set_times(finished.memory, finished.target);
  }
  if (error == 0 && finished.sync) error = -raw::fsync(finished.target);
  return error;
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

Kept keep_direct(const Finished& finished) {
  struct stat now = {};
  if (const int error = -raw::fstat(finished.target, &now)) return {error, -1};
  struct stat memory = {};
  if (const int error = -raw::fstat(finished.memory, &memory)) return {error, -1};
  if (now.st_nlink == 0) return {};
  char path[path_max];
  if (can_be_replaced(finished, path)) {
    const Kept kept = replace(finished, path);
    const bool full = kept.error == ENOSPC || kept.error == EDQUOT;
    if (kept.error == 0 || (full && !fits_without_old(finished, now))) return kept;
  }
  return {write_in_place(finished), -1};
}

}  // namespace backstay::files
