#include "capture/files/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

int first_number() {
  struct rlimit limit = {};
  if (raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) != 0) return 256;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur / 2, descriptors_max / 2));
}

}  // namespace

int keep_descriptor(Table& table, int fd) {
  const int kept = raw::fcntl(fd, F_DUPFD_CLOEXEC, first_number());
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
