// The stat family: what the file at its place is, with the size and the times of the bytes in
// memory. One that is pending comes home first.
#include <sys/sysmacros.h>

#include "capture/files/calls.h"
#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

// `found` may be of a file that is in memory.
void correct(struct stat* found) {
  Lock lock;
  const MemoryFile* file = table().at_inode(found->st_dev, found->st_ino);
  struct stat memory = {};
  if (file == nullptr || raw::fstat(file->memory, &memory) != 0) return;
  if (found->st_ino == memory.st_ino) raw::fstat(file->target, found);
  found->st_size = memory.st_size;
  found->st_blocks = memory.st_blocks;
  found->st_atim = memory.st_atim;
  found->st_mtim = memory.st_mtim;
  found->st_ctim = memory.st_ctim;
}

int corrected(int result, struct stat* found) {
  if (result == 0 && is_anything_captured()) correct(found);
  return result;
}

// The file that was found stands there whole by now, or cannot: its path is asked once more.
bool settled(int result, const struct stat* found) {
  if (result != 0 || !is_anything_pending() || !is_awaited(*found)) return false;
  settle_found(*found, true);
  return true;
}

bool settled(int result, const struct statx* found) {
  if (result != 0 || !is_anything_pending()) return false;
  struct stat same = {};
  same.st_dev = makedev(found->stx_dev_major, found->stx_dev_minor);
  same.st_ino = found->stx_ino;
  return settled(result, &same);
}

// Of an empty path with AT_EMPTY_PATH the folder is meant, which may be a memory file.
int place_at(int folder, const char* path, int flags) {
  const bool empty = (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || *path == '\0');
  return empty ? place_of(folder) : folder;
}

struct statx_timestamp as_statx(const struct timespec& time) {
  struct statx_timestamp result = {};
  result.tv_sec = time.tv_sec;
  result.tv_nsec = static_cast<uint32_t>(time.tv_nsec);
  return result;
}

void correct(struct statx* found) {
  Lock lock;
  const MemoryFile* file =
      table().at_inode(makedev(found->stx_dev_major, found->stx_dev_minor), found->stx_ino);
  struct stat memory = {};
  if (file == nullptr || raw::fstat(file->memory, &memory) != 0) return;
  found->stx_size = static_cast<uint64_t>(memory.st_size);
  found->stx_blocks = static_cast<uint64_t>(memory.st_blocks);
  found->stx_atime = as_statx(memory.st_atim);
  found->stx_mtime = as_statx(memory.st_mtim);
  found->stx_ctime = as_statx(memory.st_ctim);
}

}  // namespace

#define BY_NAME(name, parameters, arguments)                   \
  EXPORT(int, name, parameters) {                              \
    int result = NEXT(name) arguments;                         \
    if (settled(result, found)) result = NEXT(name) arguments; \
    return corrected(result, found);                           \
  }
#define BY_DESCRIPTOR(name, parameters, arguments) \
  EXPORT(int, name, parameters) {                  \
    fd = place_of(fd);                             \
    return corrected(NEXT(name) arguments, found); \
  }
#define BY_FOLDER(name, parameters, arguments)                 \
  EXPORT(int, name, parameters) {                              \
    folder = place_at(folder, path, flags);                    \
    int result = NEXT(name) arguments;                         \
    if (settled(result, found)) result = NEXT(name) arguments; \
    return corrected(result, found);                           \
  }

#define STAT(name) BY_NAME(name, (const char* path, struct stat* found), (path, found))
#define FSTAT(name) BY_DESCRIPTOR(name, (int fd, struct stat* found), (fd, found))
#define FSTATAT(name)                                                            \
  BY_FOLDER(name, (int folder, const char* path, struct stat* found, int flags), \
            (folder, path, found, flags))
BACKSTAY_STATS_BY_PATH(STAT)
BACKSTAY_STATS_BY_DESCRIPTOR(FSTAT)
BACKSTAY_STATS_BY_FOLDER(FSTATAT)

// As programs call them that were linked with a libc before 2.33.
#define XSTAT(name) \
  BY_NAME(name, (int version, const char* path, struct stat* found), (version, path, found))
#define FXSTAT(name) \
  BY_DESCRIPTOR(name, (int version, int fd, struct stat* found), (version, fd, found))
#define FXSTATAT(name)                                                                        \
  BY_FOLDER(name, (int version, int folder, const char* path, struct stat* found, int flags), \
            (version, folder, path, found, flags))
BACKSTAY_STATS_BY_PATH_OLD(XSTAT)
BACKSTAY_STATS_BY_DESCRIPTOR_OLD(FXSTAT)
BACKSTAY_STATS_BY_FOLDER_OLD(FXSTATAT)

EXPORT(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* found)) {
  const int place = place_at(folder, path, flags);
  int result = NEXT(statx)(place, path, flags, mask, found);
  if (settled(result, found)) result = NEXT(statx)(place, path, flags, mask, found);
  if (result == 0 && is_anything_captured()) correct(found);
  return result;
}

}  // namespace backstay::files
