#include "capture/files/rules.h"

#include <fcntl.h>

namespace backstay::files {
namespace {

constexpr int syncs = O_SYNC | O_DSYNC | O_DIRECT | O_ASYNC;
constexpr int no_file = O_PATH | O_DIRECTORY;

}  // namespace

bool flags_write(int flags) {
  return (flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR;
}

bool flags_allow(int flags) {
  if (!flags_write(flags)) return false;
  if ((flags & (syncs | no_file | O_APPEND)) != 0) return false;
  return (flags & (O_CREAT | O_TRUNC)) != 0;
}

bool file_allows(const Found& found, int flags) {
  const struct stat& stat = found.stat;
  if (!S_ISREG(stat.st_mode) || stat.st_nlink != 1) return false;
  if ((stat.st_mode & (S_ISUID | S_ISGID | S_ISVTX)) != 0) return false;
  if (stat.st_size != 0 && (flags & O_TRUNC) == 0) return false;
  return found.ordinary_system && !found.open_elsewhere;
}

bool flags_can_join(int flags) {
  return (flags & (syncs | no_file)) == 0 && (flags & O_ACCMODE) != O_ACCMODE;
}

int memory_flags(int flags) { return flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_NOATIME); }

}  // namespace backstay::files
