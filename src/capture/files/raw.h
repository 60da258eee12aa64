// System calls without libc in between: never one of our own interposed functions, no cancellation
// point, errno untouched. Each returns what the kernel returns: a value, or minus the error number.
#pragma once

#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
inline bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}
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

// Polls one descriptor. With a number below 0 it only waits.
inline int wait_on(int fd, short events, int milliseconds) {
  struct pollfd look = {fd, events, 0};
  struct timespec limit = {milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
  return static_cast<int>(call(SYS_ppoll, &look, fd < 0 ? 0 : 1, &limit, nullptr, 0));
}
inline long now_s() {
  struct timespec now = {};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// Blocks all signals, and returns those that were blocked before.
inline std::uint64_t block_signals() {
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  call(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
  return before;
}
inline void set_blocked_signals(std::uint64_t blocked) {
  call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, sizeof(blocked));
}

// The kernel's name for the open file, cut if it is too long. False: there is none.
template <std::size_t size>
bool path_of(int fd, char (&path)[size]) {
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const long bytes = raw::readlink(link, path, size - 1);
  if (bytes <= 0) return false;
  path[bytes] = '\0';
  return true;
}

}  // namespace backstay::files::raw
