// Calls on paths that may lead to a file in memory. Most need nothing: the file stands at its
// place, so the kernel removes, links and changes modes as ever (direct_sink.cc follows). Renames
// are in rename_calls.cc. A file that is pending (pool.h) comes home before any of them.
#include <sys/time.h>
#include <utime.h>

#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

// The memory file that truncate means, after the checks that the kernel would make.
bool truncate_memory(const char* path, off_t bytes, int& result) {
  if (!is_anything_captured()) return false;
  Lock lock;
  const MemoryFile* file = file_at_path(AT_FDCWD, path, 0);
  if (file == nullptr) return false;
  const auto denied = static_cast<int>(raw::call(SYS_faccessat2, AT_FDCWD, path, W_OK, AT_EACCESS));
  result = answer(denied != 0 ? -denied : -raw::ftruncate(file->memory, bytes));
  return true;
}

}  // namespace

#define TRUNCATES(name)                                                             \
  EXPORT(int, name, (const char* path, off_t bytes)) {                              \
    int result = 0;                                                                 \
    if (const int error = settle_path(AT_FDCWD, path, 0)) return answer(error);     \
    return truncate_memory(path, bytes, result) ? result : NEXT(name)(path, bytes); \
  }
TRUNCATES(truncate)
TRUNCATES(truncate64)

namespace {

// The file at its place got these times; its bytes in memory get them too.
void pass_times_on(MemoryFile& file) {
  struct stat placed = {};
  if (raw::fstat(file.target, &placed) != 0) return;
  file.placed.st_mtim = placed.st_mtim;
  const struct timespec times[2] = {placed.st_atim, placed.st_mtim};
  raw::futimens(file.memory, times);
}

int timed(int result, int folder, const char* path, int flags) {
  if (result != 0 || !is_anything_captured()) return result;
  Lock lock;
  if (path == nullptr) {
    if (Opening* opening = table().find(folder)) pass_times_on(*opening->file);
  } else if (MemoryFile* file = file_at_path(folder, path, flags & AT_SYMLINK_NOFOLLOW)) {
    pass_times_on(*file);
  }
  return result;
}

}  // namespace

EXPORT(int, utimensat, (int folder, const char* path, const struct timespec* times, int flags)) {
  const int place = path == nullptr ? place_of(folder) : folder;
  settle_path(folder, path, flags);
  return timed(NEXT(utimensat)(place, path, times, flags), folder, path, flags);
}

#define TIMES_BY_DESCRIPTOR(name, kind)                            \
  EXPORT(int, name, (int fd, const kind* times)) {                 \
    return timed(NEXT(name)(place_of(fd), times), fd, nullptr, 0); \
  }
TIMES_BY_DESCRIPTOR(futimens, struct timespec)
TIMES_BY_DESCRIPTOR(futimes, struct timeval)

#define TIMES_BY_PATH(name, kind, flags)                          \
  EXPORT(int, name, (const char* path, const kind* times)) {      \
    settle_path(AT_FDCWD, path, flags);                           \
    return timed(NEXT(name)(path, times), AT_FDCWD, path, flags); \
  }
TIMES_BY_PATH(utime, struct utimbuf, 0)
TIMES_BY_PATH(utimes, struct timeval, 0)
TIMES_BY_PATH(lutimes, struct timeval, AT_SYMLINK_NOFOLLOW)

EXPORT(int, futimesat, (int folder, const char* path, const struct timeval* times)) {
  const int place = path == nullptr ? place_of(folder) : folder;
  settle_path(folder, path, 0);
  return timed(NEXT(futimesat)(place, path, times), folder, path, 0);
}

}  // namespace backstay::files
