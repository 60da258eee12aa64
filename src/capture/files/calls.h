// The interposed calls that differ by a rule only, one line each: what comes back, the name, the
// parameters, the arguments. docs/guide/files.md has the same table in words. descriptor_calls.cc
// and stat_calls.cc make the functions.
//
// The first parameter of each call on a descriptor is called fd.

#pragma once

// Another process could see it: the file is made real first, and the reason counted.
#define BACKSTAY_CALLS_THAT_LOCK(CALL)                                       \
  CALL(int, flock, (int fd, int operation), (fd, operation))                 \
  CALL(int, lockf, (int fd, int command, off_t bytes), (fd, command, bytes)) \
  CALL(int, lockf64, (int fd, int command, off_t bytes), (fd, command, bytes))

// Memory files cannot do it, or another process could see it: the file is made real first.
#define BACKSTAY_CALLS_MADE_REAL(CALL)                                                            \
  CALL(int, fsetxattr, (int fd, const char* name, const void* value, size_t bytes, int flags),    \
       (fd, name, value, bytes, flags))                                                           \
  CALL(int, fremovexattr, (int fd, const char* name), (fd, name))                                 \
  CALL(int, fanotify_mark, (int fd, unsigned flags, uint64_t mask, int folder, const char* path), \
       (fd, flags, mask, folder, path))

// It asks or changes what only the file at its place has: it gets the real descriptor.
#define BACKSTAY_CALLS_ON_REAL(CALL)                                               \
  CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))                             \
  CALL(int, fchown, (int fd, uid_t owner, gid_t group), (fd, owner, group))        \
  CALL(ssize_t, fgetxattr, (int fd, const char* name, void* value, size_t bytes),  \
       (fd, name, value, bytes))                                                   \
  CALL(ssize_t, flistxattr, (int fd, char* list, size_t bytes), (fd, list, bytes)) \
  CALL(int, fstatfs, (int fd, struct statfs* system), (fd, system))                \
  CALL(int, fstatfs64, (int fd, struct statfs* system), (fd, system))              \
  CALL(int, fstatvfs, (int fd, struct statvfs* system), (fd, system))              \
  CALL(int, fstatvfs64, (int fd, struct statvfs* system), (fd, system))            \
  CALL(long, fpathconf, (int fd, int name), (fd, name))

// It writes: the memory that is allowed may end here. The last column is the number of bytes.
#define BACKSTAY_CALLS_THAT_WRITE(CALL)                                                            \
  CALL(ssize_t, write, (int fd, const void* from, size_t bytes), (fd, from, bytes), bytes)         \
  CALL(ssize_t, pwrite, (int fd, const void* from, size_t bytes, off_t at), (fd, from, bytes, at), \
       bytes)                                                                                      \
  CALL(ssize_t, pwrite64, (int fd, const void* from, size_t bytes, off_t at),                      \
       (fd, from, bytes, at), bytes)                                                               \
  CALL(ssize_t, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count),        \
       bytes_of(parts, count))                                                                     \
  CALL(ssize_t, pwritev, (int fd, const struct iovec* parts, int count, off_t at),                 \
       (fd, parts, count, at), bytes_of(parts, count))                                             \
  CALL(ssize_t, pwritev64, (int fd, const struct iovec* parts, int count, off_t at),               \
       (fd, parts, count, at), bytes_of(parts, count))                                             \
  CALL(ssize_t, sendfile, (int fd, int in, off_t* at, size_t bytes), (fd, in, at, bytes), bytes)   \
  CALL(ssize_t, sendfile64, (int fd, int in, off_t* at, size_t bytes), (fd, in, at, bytes), bytes) \
  CALL(int, ftruncate, (int fd, off_t bytes), (fd, bytes), 0)                                      \
  CALL(int, ftruncate64, (int fd, off_t bytes), (fd, bytes), 0)                                    \
  CALL(int, posix_fallocate, (int fd, off_t at, off_t bytes), (fd, at, bytes), bytes)              \
  CALL(int, posix_fallocate64, (int fd, off_t at, off_t bytes), (fd, at, bytes), bytes)

// The bytes have to be on a disk (capture.h).
#define BACKSTAY_CALLS_THAT_SYNC(CALL)                                        \
  CALL(int, fsync, (int fd), (fd))                                            \
  CALL(int, fdatasync, (int fd), (fd))                                        \
  CALL(int, sync_file_range, (int fd, off_t at, off_t bytes, unsigned flags), \
       (fd, at, bytes, flags))

// The stat family, by its names: all have the same parameters.
#define BACKSTAY_STATS_BY_PATH(CALL) CALL(stat) CALL(stat64) CALL(lstat) CALL(lstat64)
#define BACKSTAY_STATS_BY_DESCRIPTOR(CALL) CALL(fstat) CALL(fstat64)
#define BACKSTAY_STATS_BY_FOLDER(CALL) CALL(fstatat) CALL(fstatat64)

// As programs call them that were linked with a libc before 2.33.
#define BACKSTAY_STATS_BY_PATH_OLD(CALL) \
  CALL(__xstat) CALL(__xstat64) CALL(__lxstat) CALL(__lxstat64)
#define BACKSTAY_STATS_BY_DESCRIPTOR_OLD(CALL) CALL(__fxstat) CALL(__fxstat64)
#define BACKSTAY_STATS_BY_FOLDER_OLD(CALL) CALL(__fxstatat) CALL(__fxstatat64)
