// The calls on descriptors that calls.h lists, and those on descriptors that need more than a rule.
#include <asm/ioctls.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdarg>

#include "capture/files/calls.h"
#include "capture/files/capture.h"
#include "capture/files/counts.h"
#include "capture/files/export.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

unsigned long long bytes_of(const struct iovec* parts, int count) {
  unsigned long long bytes = 0;
  for (int part = 0; part < count; ++part) bytes += parts[part].iov_len;
  return bytes;
}

// Whether a write that the kernel refused came while its file left memory (leave.h): then it is
// over when this returns, and the call may be tried again.
bool left_memory() {
  if (errno != EPERM) return false;
  Lock lock;
  return true;
}

}  // namespace

#define MADE_REAL(result, name, parameters, arguments) \
  EXPORT(result, name, parameters) {                   \
    make_descriptor_real(fd);                          \
    return NEXT(name) arguments;                       \
  }
BACKSTAY_CALLS_MADE_REAL(MADE_REAL)

#define THAT_LOCKS(result, name, parameters, arguments) \
  EXPORT(result, name, parameters) {                    \
    make_locked_real(fd);                               \
    return NEXT(name) arguments;                        \
  }
BACKSTAY_CALLS_THAT_LOCK(THAT_LOCKS)

#define ON_REAL(result, name, parameters, arguments) \
  EXPORT(result, name, parameters) {                 \
    fd = place_of(fd);                               \
    return NEXT(name) arguments;                     \
  }
BACKSTAY_CALLS_ON_REAL(ON_REAL)

#define THAT_WRITES(result, name, parameters, arguments, length)  \
  EXPORT(result, name, parameters) {                              \
    if (table().find(fd) == nullptr) return NEXT(name) arguments; \
    const auto wanted = static_cast<unsigned long long>(length);  \
    expect_write(fd, wanted);                                     \
    const CountedWrite counted(wanted);                           \
    const result first = NEXT(name) arguments;                    \
    const bool again = first < 0 && left_memory();                \
    return counted.done(again ? NEXT(name) arguments : first);    \
  }
BACKSTAY_CALLS_THAT_WRITE(THAT_WRITES)

#define THAT_SYNCS(result, name, parameters, arguments)              \
  EXPORT(result, name, parameters) {                                 \
    if (const int error = sync_descriptor(fd)) return answer(error); \
    return NEXT(name) arguments;                                     \
  }
BACKSTAY_CALLS_THAT_SYNC(THAT_SYNCS)

EXPORT(int, syncfs, (int fd)) {
  if (const int error = place_descriptor(fd)) return answer(error);
  return NEXT(syncfs)(fd);
}

// What was written with this flag has to be on a disk.
static ssize_t and_sync(int fd, ssize_t written, int flags) {
  if (written < 0 || (flags & (RWF_SYNC | RWF_DSYNC)) == 0) return written;
  const int error = sync_descriptor(fd);
  return error != 0 ? answer(error) : written;
}

#define THAT_MAY_SYNC(name)                                                                    \
  EXPORT(ssize_t, name, (int fd, const struct iovec* parts, int count, off_t at, int flags)) { \
    if (table().find(fd) == nullptr) return NEXT(name)(fd, parts, count, at, flags);           \
    const auto wanted = static_cast<unsigned long long>(bytes_of(parts, count));               \
    expect_write(fd, wanted);                                                                  \
    const CountedWrite counted(wanted);                                                        \
    const ssize_t first = NEXT(name)(fd, parts, count, at, flags);                             \
    const bool again = first < 0 && left_memory();                                             \
    const ssize_t done = again ? NEXT(name)(fd, parts, count, at, flags) : first;              \
    return and_sync(fd, counted.done(done), flags);                                            \
  }
THAT_MAY_SYNC(pwritev2)
THAT_MAY_SYNC(pwritev64v2)

EXPORT(void, sync, ()) {
  bring_all_home();
  NEXT(sync)();
}

// Memory files have holes as other files have, and nothing else that fallocate can do.
static int fallocate_memory(int fd, int mode, off_t bytes) {
  constexpr int known = 0x01 | 0x02;  // keep the size, punch a hole
  if (table().find(fd) == nullptr) return 0;
  if ((mode & ~known) != 0) return make_descriptor_real(fd);
  if ((mode & 0x02) == 0 && bytes > 0) expect_write(fd, static_cast<unsigned long long>(bytes));
  return 0;
}

#define ALLOCATES(name)                                          \
  EXPORT(int, name, (int fd, int mode, off_t at, off_t bytes)) { \
    fallocate_memory(fd, mode, bytes);                           \
    return NEXT(name)(fd, mode, at, bytes);                      \
  }
ALLOCATES(fallocate)
ALLOCATES(fallocate64)

// What is written through a shared mapping passes by every call, also after the last close.
#define MAPS(name)                                                                               \
  EXPORT(void*, name, (void* at, size_t bytes, int protection, int flags, int fd, off_t from)) { \
    if ((flags & MAP_ANONYMOUS) == 0 && (flags & MAP_SHARED) != 0) make_descriptor_real(fd);     \
    return NEXT(name)(at, bytes, protection, flags, fd, from);                                   \
  }
MAPS(mmap)
MAPS(mmap64)

EXPORT(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  const bool harmless = request == TCGETS || request == FIONREAD || request == FIOCLEX ||
                        request == FIONCLEX || request == TIOCGWINSZ || request == FIONBIO;
  if (!harmless) make_descriptor_real(fd);
  return NEXT(ioctl)(fd, request, argument);
}

// A descriptor that goes to another process.
EXPORT(ssize_t, sendmsg, (int fd, const struct msghdr* message, int flags)) {
  if (message != nullptr && message->msg_controllen != 0 && is_anything_captured()) {
    auto* header = const_cast<struct msghdr*>(message);
    for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      const int* first = reinterpret_cast<const int*>(CMSG_DATA(part));
      const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t number = 0; number < count; ++number) make_descriptor_real(first[number]);
    }
  }
  return NEXT(sendmsg)(fd, message, flags);
}

// The kernel copies inside of one file system only; a memory file and another file are in two. What
// comes back may be less than was asked for, as ever.
static ssize_t copy_across(int in, off_t* in_at, int out, off_t* out_at, size_t bytes) {
  char piece[1 << 16];
  const size_t wanted = std::min(bytes, sizeof(piece));
  const long got =
      in_at != nullptr ? raw::pread(in, piece, wanted, *in_at) : raw::read(in, piece, wanted);
  if (got <= 0) return got < 0 ? answer(static_cast<int>(-got)) : 0;
  const auto length = static_cast<size_t>(got);
  const long put =
      out_at != nullptr ? raw::pwrite(out, piece, length, *out_at) : raw::write(out, piece, length);
  if (in_at == nullptr) raw::lseek(in, (put < 0 ? 0 : put) - got, SEEK_CUR);
  if (put < 0) return answer(static_cast<int>(-put));
  if (in_at != nullptr) *in_at += put;
  if (out_at != nullptr) *out_at += put;
  return put;
}

EXPORT(ssize_t, copy_file_range,
       (int fd, off_t* in_at, int out, off_t* out_at, size_t bytes, unsigned flags)) {
  const bool memory = table().find(fd) != nullptr || table().find(out) != nullptr;
  if (!memory) return NEXT(copy_file_range)(fd, in_at, out, out_at, bytes, flags);
  expect_write(out, bytes);
  const bool writes = table().find(out) != nullptr;
  const CountedWrite counted(bytes);
  ssize_t done = NEXT(copy_file_range)(fd, in_at, out, out_at, bytes, flags);
  if (done < 0 && errno == EXDEV) done = copy_across(fd, in_at, out, out_at, bytes);
  return writes ? counted.done(done) : done;
}

}  // namespace backstay::files
