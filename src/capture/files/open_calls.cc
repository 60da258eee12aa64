// The calls that open files by name, all of them by open_file.
#include <cstdarg>

#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

}  // namespace

#define MODE_OF(flags)                             \
  mode_t mode = 0;                                 \
  if (has_mode(flags)) {                           \
    va_list list;                                  \
    va_start(list, flags);                         \
    mode = static_cast<mode_t>(va_arg(list, int)); \
    va_end(list);                                  \
  }

EXPORT(int, openat, (int folder, const char* path, int flags, ...)) {
  MODE_OF(flags)
  return open_file(folder, path, flags, mode);
}

int next_openat(int folder, const char* path, int flags, mode_t mode) {
  return NEXT(openat)(folder, path, flags, mode);
}

EXPORT(int, openat64, (int folder, const char* path, int flags, ...)) {
  MODE_OF(flags)
  return open_file(folder, path, flags | O_LARGEFILE, mode);
}

EXPORT(int, open, (const char* path, int flags, ...)) {
  MODE_OF(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}

EXPORT(int, open64, (const char* path, int flags, ...)) {
  MODE_OF(flags)
  return open_file(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

EXPORT(int, creat, (const char* path, mode_t mode)) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT(int, creat64, (const char* path, mode_t mode)) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode);
}

// What compilers make of open without a mode where they check for that.
EXPORT(int, __open_2, (const char* path, int flags)) { return open_file(AT_FDCWD, path, flags, 0); }
EXPORT(int, __open64_2, (const char* path, int flags)) {
  return open_file(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}
EXPORT(int, __openat_2, (int folder, const char* path, int flags)) {
  return open_file(folder, path, flags, 0);
}
EXPORT(int, __openat64_2, (int folder, const char* path, int flags)) {
  return open_file(folder, path, flags | O_LARGEFILE, 0);
}

}  // namespace backstay::files
