#include "capture/files/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

bool get_limit(struct rlimit& limit) {
  return raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) == 0;
}

void set_limit(const struct rlimit& limit) {
  raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
}

// A number that the program does not miss: behind its own limit, which is raised for a moment.
// Descriptors stay what they are when a limit falls. Where the hard limit is as low, or the
// program's own numbers go far, half of them are ours.
int duplicate(int fd) {
  struct rlimit limit = {};
  if (!get_limit(limit)) return raw::fcntl(fd, F_DUPFD_CLOEXEC, 256);
  const rlim_t half = std::min<rlim_t>(limit.rlim_cur / 2, descriptors_max / 2);
  if (limit.rlim_cur <= descriptors_max / 2 && limit.rlim_cur < limit.rlim_max) {
    struct rlimit raised = limit;
    raised.rlim_cur = std::min<rlim_t>(limit.rlim_max, descriptors_max);
    set_limit(raised);
    const int kept = raw::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<long>(limit.rlim_cur));
    set_limit(limit);
    if (kept >= 0) return kept;
  }
  return raw::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<long>(half));
}

}  // namespace

int keep_descriptor(Table& table, int fd) {
  const int kept = duplicate(fd);
  if (kept < 0) return kept;
  if (kept >= descriptors_max) {
    raw::close(kept);
    return -EMFILE;
  }
  table.set_ours(kept, true);
  return kept;
}

int move_descriptor(Table& table, int fd) {
  if (fd < 0) return fd;
  const int moved = keep_descriptor(table, fd);
  raw::close(fd);
  return moved;
}

void close_descriptor(Table& table, int fd) {
  if (fd < 0) return;
  table.set_ours(fd, false);
  raw::close(fd);
}

int put_at_number(int from, int to, int flags) {
  int result = -1;
  for (int attempt = 0; attempt < 100 && result < 0; ++attempt) {
    result = raw::dup3(from, to, flags);
  }
  return result;
}

int reopen(int fd, int flags) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  return raw::openat(AT_FDCWD, path, flags | O_CLOEXEC);
}

}  // namespace backstay::files
