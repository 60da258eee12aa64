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

int place_of(int fd) {
  const Opening* opening = opening_of(fd);
  return opening == nullptr ? fd : opening->real;
}

// Of an empty path with AT_EMPTY_PATH the folder is meant, which may be a memory file.
int place_of(int folder, const char* path, int flags) {
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

#define BY_PATH(name)                                             \
  EXPORT(int, name, (const char* path, struct stat* found)) {     \
    int result = NEXT(name)(path, found);                         \
    if (settled(result, found)) result = NEXT(name)(path, found); \
    return corrected(result, found);                              \
  }
BACKSTAY_STATS_BY_PATH(BY_PATH)

#define BY_DESCRIPTOR(name)                                   \
  EXPORT(int, name, (int fd, struct stat* found)) {           \
    return corrected(NEXT(name)(place_of(fd), found), found); \
  }
BACKSTAY_STATS_BY_DESCRIPTOR(BY_DESCRIPTOR)

#define BY_FOLDER(name)                                                              \
  EXPORT(int, name, (int folder, const char* path, struct stat* found, int flags)) { \
    const int place = place_of(folder, path, flags);                                 \
    int result = NEXT(name)(place, path, found, flags);                              \
    if (settled(result, found)) result = NEXT(name)(place, path, found, flags);      \
    return corrected(result, found);                                                 \
  }
BACKSTAY_STATS_BY_FOLDER(BY_FOLDER)

// As programs call them that were linked with a libc before 2.33.
#define BY_PATH_OLD(name)                                                  \
  EXPORT(int, name, (int version, const char* path, struct stat* found)) { \
    int result = NEXT(name)(version, path, found);                         \
    if (settled(result, found)) result = NEXT(name)(version, path, found); \
    return corrected(result, found);                                       \
  }
BACKSTAY_STATS_BY_PATH_OLD(BY_PATH_OLD)

#define BY_DESCRIPTOR_OLD(name)                                        \
  EXPORT(int, name, (int version, int fd, struct stat* found)) {       \
    return corrected(NEXT(name)(version, place_of(fd), found), found); \
  }
BACKSTAY_STATS_BY_DESCRIPTOR_OLD(BY_DESCRIPTOR_OLD)

#define BY_FOLDER_OLD(name)                                                                       \
  EXPORT(int, name, (int version, int folder, const char* path, struct stat* found, int flags)) { \
    const int place = place_of(folder, path, flags);                                              \
    int result = NEXT(name)(version, place, path, found, flags);                                  \
    if (settled(result, found)) result = NEXT(name)(version, place, path, found, flags);          \
    return corrected(result, found);                                                              \
  }
BACKSTAY_STATS_BY_FOLDER_OLD(BY_FOLDER_OLD)

EXPORT(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* found)) {
  const int place = place_of(folder, path, flags);
  int result = NEXT(statx)(place, path, flags, mask, found);
  if (settled(result, found)) result = NEXT(statx)(place, path, flags, mask, found);
  if (result == 0 && is_anything_captured()) correct(found);
  return result;
}

}  // namespace backstay::files
