// Streams: libc opens, writes and closes their files by calls that cannot be interposed. So a
// stream is opened here, on a descriptor of open_file, and what closes it is interposed; its reads
// and writes need nothing.
#include <stdio_ext.h>

#include <cstdio>
#include <cstring>

#include "capture/files/capture.h"
#include "capture/files/counts.h"
#include "capture/files/export.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

// The flags of open for a mode of fopen; -1: libc shall say what is wrong with it.
int flags_of(const char* mode) {
  if (mode == nullptr || std::strstr(mode, ",ccs=") != nullptr) return -1;
  int flags = 0;
  switch (mode[0]) {
    case 'r': flags = O_RDONLY; break;
    case 'w': flags = O_WRONLY | O_CREAT | O_TRUNC; break;
    case 'a': flags = O_WRONLY | O_CREAT | O_APPEND; break;
    default: return -1;
  }
  for (const char* letter = mode + 1; *letter != '\0'; ++letter) {
    if (*letter == '+') flags = (flags & ~O_ACCMODE) | O_RDWR;
    if (*letter == 'x') flags |= O_EXCL;
    if (*letter == 'e') flags |= O_CLOEXEC;
  }
  return flags;
}

bool needs_nothing(const char* mode, int flags) {
  if (flags < 0) return true;
  const bool reads_only = (flags & O_ACCMODE) == O_RDONLY;
  return (reads_only || mode[0] == 'a') && table().empty() && !is_anything_pending();
}

// While the file of a stream leaves memory, nobody may be inside of the stream (leave.h).
void know_stream(int fd, FILE* stream) {
  if (stream == nullptr || opening_of(fd) == nullptr) return;
  Lock lock;
  if (Opening* opening = table().find(fd)) opening->stream = stream;
}

}  // namespace

EXPORT(FILE*, fdopen, (int fd, const char* mode)) {
  FILE* stream = NEXT(fdopen)(fd, mode);
  know_stream(fd, stream);
  return stream;
}

namespace {

FILE* open_stream(const char* path, const char* mode, int flags) {
  const int fd = open_file(AT_FDCWD, path, flags | O_LARGEFILE, 0666);
  if (fd < 0) return nullptr;
  // libc begins at the end only where it opens the file itself.
  if ((flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND)) raw::lseek(fd, 0, SEEK_END);
  FILE* stream = backstay_fdopen(fd, mode);
  if (stream != nullptr) return stream;
  const int error = errno;
  {
    Lock lock;
    if (table().find(fd) != nullptr) end_descriptor(fd);
  }
  raw::close(fd);
  errno = error;
  return nullptr;
}

}  // namespace

#define OPENS(name)                                                                              \
  EXPORT(FILE*, name, (const char* path, const char* mode)) {                                    \
    const int flags = flags_of(mode);                                                            \
    return needs_nothing(mode, flags) ? NEXT(name)(path, mode) : open_stream(path, mode, flags); \
  }
OPENS(fopen)
OPENS(fopen64)

namespace {

// Before libc closes the descriptor of a stream. Returns an error number.
int end_stream(FILE* stream) {
  if (stream == nullptr || table().empty()) return 0;
  const int fd = ::fileno(stream);
  if (opening_of(fd) == nullptr) return 0;
  // One that reads has nothing to bring along, and libc closes it without that.
  int error = ::__fwriting(stream) == 0 || std::fflush(stream) == 0 ? 0 : errno;
  Lock lock;
  Opening* opening = table().find(fd);
  if (opening == nullptr) return error;
  if (opening->stream == stream) opening->stream = nullptr;
  const int ended = end_descriptor(fd);
  return error != 0 ? error : ended;
}

void open_again(FILE* stream, const char* path) {
  end_stream(stream);
  if (path == nullptr || !is_anything_captured()) return;
  Lock lock;
  if (MemoryFile* file = file_at_path(AT_FDCWD, path, 0)) make_real(*file);
}

}  // namespace

EXPORT(int, fclose, (FILE * stream)) {
  const int error = end_stream(stream);
  const int result = NEXT(fclose)(stream);
  if (error == 0) return result;
  errno = error;
  return EOF;
}

EXPORT(int, fcloseall, ()) {
  if (is_anything_captured()) std::fflush(nullptr);
  bring_all_home();
  return NEXT(fcloseall)();
}

// The stream's new file is opened natively.
#define OPENS_AGAIN(name)                                                   \
  EXPORT(FILE*, name, (const char* path, const char* mode, FILE* stream)) { \
    settle_file(AT_FDCWD, path, 0);                                         \
    open_again(stream, path);                                               \
    return NEXT(name)(path, mode, stream);                                  \
  }
OPENS_AGAIN(freopen)
OPENS_AGAIN(freopen64)

namespace {

// `next` writes to the stream, and returns how many elements.
template <typename Next>
size_t write_elements(size_t bytes, size_t count, FILE* stream, Next next) {
  const int fd = table().empty() ? -1 : ::fileno(stream);
  if (table().find(fd) == nullptr) return next();
  expect_write(fd, bytes * count);
  const CountedWrite counted(bytes * count);
  const size_t done = next();
  counted.done(static_cast<ssize_t>(done * bytes));
  return done;
}

}  // namespace

#define WRITES(name)                                                                   \
  EXPORT(size_t, name, (const void* from, size_t bytes, size_t count, FILE* stream)) { \
    return write_elements(bytes, count, stream,                                        \
                          [&] { return NEXT(name)(from, bytes, count, stream); });     \
  }
WRITES(fwrite)
WRITES(fwrite_unlocked)

}  // namespace backstay::files
