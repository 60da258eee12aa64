// System calls without libc in between: never one of our own interposed functions, no cancellation
// point, errno untouched. Each returns what the kernel returns: a value, or minus the error number.
#pragma once

#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace backstay::files::raw {

#ifdef __x86_64__
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result = number;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

template <typename T>
long word(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

// libc's syscall() is one of our own here (syscall_x86_64.cc).
template <typename... Arguments>
  requires(sizeof...(Arguments) > 0 && !(std::is_same_v<Arguments, long> && ...))
long call(long number, Arguments... arguments) { return call(number, word(arguments)...); }
#else
template <typename... Arguments>
long call(long number, Arguments... arguments) {
  const int kept = errno;
  long result = ::syscall(number, arguments...);
  if (result < 0) result = -errno;
  errno = kept;
  return result;
}
#endif

inline int openat(int folder, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(call(SYS_openat, folder, path, flags, mode));
}
inline int close(int fd) { return static_cast<int>(call(SYS_close, fd)); }
inline int fcntl(int fd, int command, long argument = 0) {
  return static_cast<int>(call(SYS_fcntl, fd, command, argument));
}
inline int dup3(int from, int to, int flags) {
  return static_cast<int>(call(SYS_dup3, from, to, flags));
}
inline long lseek(int fd, off_t offset, int whence) { return call(SYS_lseek, fd, offset, whence); }
inline long pread(int fd, void* to, std::size_t bytes, off_t offset) {
  return call(SYS_pread64, fd, to, bytes, offset);
}
inline long pwrite(int fd, const void* from, std::size_t bytes, off_t offset) {
  return call(SYS_pwrite64, fd, from, bytes, offset);
}
inline long write(int fd, const void* from, std::size_t bytes) {
  return call(SYS_write, fd, from, bytes);
}
inline long read(int fd, void* to, std::size_t bytes) { return call(SYS_read, fd, to, bytes); }
inline int ftruncate(int fd, off_t bytes) {
  return static_cast<int>(call(SYS_ftruncate, fd, bytes));
}
inline int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return static_cast<int>(call(SYS_fallocate, fd, mode, offset, bytes));
}
inline int fsync(int fd) { return static_cast<int>(call(SYS_fsync, fd)); }
inline int fchmod(int fd, mode_t mode) { return static_cast<int>(call(SYS_fchmod, fd, mode)); }
inline int fchown(int fd, uid_t owner, gid_t group) {
  return static_cast<int>(call(SYS_fchown, fd, owner, group));
}
inline int futimens(int fd, const struct timespec times[2]) {
  return static_cast<int>(call(SYS_utimensat, fd, nullptr, times, 0));
}
inline int fstatat(int folder, const char* path, struct stat* found, int flags) {
  return static_cast<int>(call(SYS_newfstatat, folder, path, found, flags));
}
inline int fstat(int fd, struct stat* found) { return raw::fstatat(fd, "", found, AT_EMPTY_PATH); }
inline int unlink(const char* path) {
  return static_cast<int>(call(SYS_unlinkat, AT_FDCWD, path, 0));
}
inline int rename(const char* from, const char* to) {
  return static_cast<int>(call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
inline long readlink(const char* path, char* to, std::size_t bytes) {
  return call(SYS_readlinkat, AT_FDCWD, path, to, bytes);
}
inline int memfd(const char* name) {
  return static_cast<int>(call(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}
inline pid_t getpid() { return static_cast<pid_t>(call(SYS_getpid)); }

}  // namespace backstay::files::raw
