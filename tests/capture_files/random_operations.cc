// Performs random operations on files in a folder and prints what each returned. The test runs it
// twice with the same seed, natively and captured, and compares every line (random_test.py).
//
//     random_operations SEED COUNT FOLDER
//
// Standard error tells how many descriptors were those of memory files.
//
// A program as users have them: it knows nothing of Backstay. What it prints is what both runs must
// share: values, error numbers, descriptors, bytes read, sizes, modes, numbers of links. It goes to
// standard output.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "random_state.h"

namespace {

void do_open() {
  static const int access[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
  static const int more[] = {0,       O_CREAT,          O_CREAT | O_TRUNC, O_CREAT | O_TRUNC,
                             O_TRUNC, O_CREAT | O_EXCL, O_CREAT | O_APPEND};
  static const int rare[] = {O_SYNC, O_NOFOLLOW, O_CLOEXEC, O_APPEND, O_NONBLOCK, O_DIRECTORY};
  int flags = access[below(4)] | more[below(7)];
  if (below(5) == 0) flags |= rare[below(6)];
  const std::string name = some_name();
  if (descriptors.size() > 12) return;
  static const unsigned modes[] = {0644, 0600, 0444, 0666};
  const int fd = open(name.c_str(), flags, modes[below(4)]);
  say("open %s %o -> ", name.c_str(), flags);
  result("open", fd);
  opened(fd);
}

void do_close() {
  const int fd = some_descriptor();
  const int closed = close(fd);
  result("close", closed);
  std::erase(descriptors, fd);
}

void do_write() {
  const std::string bytes = some_bytes();
  result("write", write(some_descriptor(), bytes.data(), bytes.size()));
}

void do_pwrite() {
  const std::string bytes = some_bytes();
  const int fd = some_descriptor();
  result("pwrite", pwrite(fd, bytes.data(), bytes.size(), some_offset()));
}

void do_writev() {
  std::string first = some_bytes();
  std::string second = some_bytes();
  const iovec parts[2] = {{first.data(), first.size()}, {second.data(), second.size()}};
  const int fd = some_descriptor();
  if (below(2) == 0) {
    result("writev", writev(fd, parts, 2));
  } else {
    result("pwritev", pwritev(fd, parts, 2, some_offset()));
  }
}

void do_read() {
  std::vector<char> bytes(below(2) == 0 ? 100000 : 1 + below(5000));
  const int fd = some_descriptor();
  const ssize_t got = below(2) == 0 ? read(fd, bytes.data(), bytes.size())
                                    : pread(fd, bytes.data(), bytes.size(), some_offset());
  result("read", got);
  if (got > 0) say("  sum %016lx\n", sum_of(bytes.data(), static_cast<size_t>(got)));
}

void do_seek() {
  static const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END};
  const int fd = some_descriptor();
  const auto offset = static_cast<off_t>(below(12000)) - (below(3) == 0 ? 4000 : 0);
  result("lseek", lseek(fd, offset, whences[below(3)]));
}

void do_dup() {
  if (descriptors.size() > 12) return;
  const int fd = some_descriptor();
  int copy = -1;
  switch (below(4)) {
    case 0: copy = dup(fd); break;
    case 1: copy = fcntl(fd, F_DUPFD, 5 + below(10)); break;
    case 2: copy = fcntl(fd, F_DUPFD_CLOEXEC, 3); break;
    default: {
      const int to = static_cast<int>(3 + below(16));
      copy = below(2) == 0 ? dup2(fd, to) : dup3(fd, to, O_CLOEXEC);
      if (copy >= 0) std::erase(descriptors, copy);
    }
  }
  result("dup", copy);
  opened(copy);
}

void do_flags() {
  const int fd = some_descriptor();
  result("getfd", fcntl(fd, F_GETFD));
  const int flags = fcntl(fd, F_GETFL);
  result("getfl", flags < 0 ? flags : flags & ~O_NOFOLLOW);  // docs/guide/files.md: lost at fsync
  if (flags >= 0 && below(4) == 0) result("setfl", fcntl(fd, F_SETFL, flags ^ O_APPEND));
  if (below(6) == 0) result("setfd", fcntl(fd, F_SETFD, static_cast<int>(below(2))));
}

void do_truncate() {
  const off_t bytes = some_offset();
  if (below(3) == 0) {
    result("truncate", truncate(some_name().c_str(), bytes));
  } else {
    result("ftruncate", ftruncate(some_descriptor(), bytes));
  }
}

void do_allocate() {
  const int fd = some_descriptor();
  switch (below(4)) {
    case 0:
      errno = posix_fallocate(fd, some_offset(), 1 + below(9000));  // which leaves errno alone
      result("posix_fallocate", -errno);
      break;
    case 1:
      result("keep", fallocate(fd, FALLOC_FL_KEEP_SIZE, some_offset(), 1 + below(9000)));
      break;
    case 2:
      result("punch", fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, some_offset(),
                                1 + below(9000)));
      break;
    default: result("zero", fallocate(fd, FALLOC_FL_ZERO_RANGE, some_offset(), 1 + below(9000)));
  }
}

void print_stat(const char* what, int failed, const struct stat& found) {
  result(what, failed);
  if (failed != 0) return;
  const bool ordinary = S_ISREG(found.st_mode);
  say("  mode %o links %lu size %ld\n", found.st_mode, found.st_nlink,
      ordinary ? static_cast<long>(found.st_size) : 0L);
}

void do_stat() {
  struct stat found = {};
  const std::string name = some_name();
  switch (below(4)) {
    case 0: print_stat("stat", stat(name.c_str(), &found), found); break;
    case 1: print_stat("lstat", lstat(name.c_str(), &found), found); break;
    case 2: print_stat("fstat", fstat(some_descriptor(), &found), found); break;
    default: {
      struct statx more = {};
      const int failed = statx(AT_FDCWD, name.c_str(), 0, STATX_BASIC_STATS, &more);
      result("statx", failed);
      if (failed == 0) say("  mode %o size %llu\n", more.stx_mode, more.stx_size);
    }
  }
}

// A descriptor and the path that it was opened by are one file.
void do_same() {
  struct stat by_path = {};
  struct stat by_descriptor = {};
  const std::string name = some_name();
  const int fd = some_descriptor();
  if (stat(name.c_str(), &by_path) != 0 || fstat(fd, &by_descriptor) != 0) return;
  const bool same =
      by_path.st_dev == by_descriptor.st_dev && by_path.st_ino == by_descriptor.st_ino;
  say("same %d\n", same);
  if (same && by_path.st_size != by_descriptor.st_size) say("  but not of one size\n");
}

void do_name() {
  const std::string from = some_name();
  const std::string to = some_name();
  switch (below(6)) {
    case 0:
    case 1: result("rename", rename(from.c_str(), to.c_str())); break;
    case 2:
    case 3: result("unlink", unlink(from.c_str())); break;
    case 4: result("link", link(from.c_str(), to.c_str())); break;
    default: result("renameat2", renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), below(3)));
  }
}

void do_mode() {
  const std::string name = some_name();
  const mode_t mode = 0400 + below(4) * 0100 + below(8);
  switch (below(3)) {
    case 0: result("chmod", chmod(name.c_str(), mode)); break;
    case 1: result("fchmod", fchmod(some_descriptor(), mode)); break;
    default: result("access", access(name.c_str(), static_cast<int>(below(8))));
  }
}

void do_times() {
  const std::string name = some_name();
  const timespec times[2] = {{1000000 + below(1000), 5}, {2000000 + below(1000), 7}};
  const int fd = some_descriptor();
  const bool by_path = below(2) == 0;
  const int failed = by_path ? utimensat(AT_FDCWD, name.c_str(), times, 0) : futimens(fd, times);
  result("times", failed);
  struct stat found = {};
  if (failed == 0 && (by_path ? stat(name.c_str(), &found) : fstat(fd, &found)) == 0) {
    say("  %ld.%ld %ld\n", found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_atim.tv_sec);
  }
}

void do_map() {
  const int fd = some_descriptor();
  struct stat found = {};
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size == 0) return;
  const auto bytes = static_cast<size_t>(found.st_size);
  const bool writes = below(2) == 0;
  void* at = mmap(nullptr, bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ,
                  below(3) == 0 ? MAP_PRIVATE : MAP_SHARED, fd, 0);
  say("mmap %d %s\n", at != MAP_FAILED, at == MAP_FAILED ? strerrorname_np(errno) : "");
  if (at == MAP_FAILED) return;
  auto* text = static_cast<char*>(at);
  say("  sum %016lx\n", sum_of(text, bytes));
  if (writes) std::memset(text + bytes / 2, static_cast<int>(below(256)), bytes - bytes / 2);
  if (below(2) == 0) result("msync", msync(at, bytes, MS_SYNC));
  munmap(at, bytes);
}

void do_sync() {
  const int fd = some_descriptor();
  result("fsync", below(2) == 0 ? fsync(fd) : fdatasync(fd));
}

void do_copy() {
  const int from = some_descriptor();
  const int to = some_descriptor();
  struct stat one = {};
  struct stat other = {};
  if (fstat(from, &one) != 0 || fstat(to, &other) != 0 || one.st_ino == other.st_ino) return;
  off_t in = some_offset();
  off_t out = some_offset();
  size_t left = 1 + below(50000);
  ssize_t copied = 0;
  const bool range = below(2) == 0;
  long all = 0;
  while (left > 0) {
    copied =
        range ? copy_file_range(from, &in, to, &out, left, 0) : sendfile64(to, from, &in, left);
    if (copied <= 0) break;
    all += copied;
    left -= static_cast<size_t>(copied);
  }
  result(range ? "copy_file_range" : "sendfile", copied < 0 ? copied : all);
}

void do_lock() { result("flock", flock(some_descriptor(), below(2) == 0 ? LOCK_SH : LOCK_UN)); }

void do_close_range() {
  const unsigned first = 3 + below(12);
  const unsigned last = first + below(3);
  for (FILE* stream : streams) {
    const auto fd = static_cast<unsigned>(fileno(stream));
    if (fd >= first && fd <= last) return;
  }
  result("close_range", close_range(first, last, 0));
  std::erase_if(descriptors, [&](int fd) {
    return static_cast<unsigned>(fd) >= first && static_cast<unsigned>(fd) <= last;
  });
}

void do_folder() {
  const bool up = access("folder", F_OK) == 0;
  result("rename folder", up ? rename("folder", "moved") : rename("moved", "folder"));
}

void list(const char* folder) {
  DIR* open_folder = opendir(folder);
  if (open_folder == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open_folder)) names.emplace_back(entry->d_name);
  closedir(open_folder);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) say("  %s\n", name.c_str());
}

struct Kind {
  void (*perform)();
  unsigned weight;
};

const Kind kinds[] = {
    {do_open, 70},         {do_close, 45},    {do_write, 70},    {do_pwrite, 50},
    {do_writev, 20},       {do_read, 50},     {do_seek, 35},     {do_dup, 20},
    {do_flags, 15},        {do_truncate, 25}, {do_allocate, 12}, {do_stat, 35},
    {do_same, 20},         {do_name, 30},     {do_mode, 10},     {do_times, 10},
    {do_map, 5},           {do_sync, 3},      {do_copy, 20},     {do_lock, 1},
    {do_fopen, 20},        {do_stream, 50},   {do_fclose, 15},   {do_fork, 2},
    {do_replace, 25},      {do_system, 1},    {do_folder, 3},    {do_close_range, 3},
    {[] { list("."); }, 3}};

void perform_one() {
  unsigned all = 0;
  for (const Kind& kind : kinds) all += kind.weight;
  unsigned chosen = below(all);
  for (const Kind& kind : kinds) {
    if (chosen < kind.weight) return kind.perform();
    chosen -= kind.weight;
  }
}

// The process ends with files open, in one of the ways in which programs end.
int end_somehow() {
  switch (below(4)) {
    case 0: exit(0);
    case 1: _exit(0);
    case 2: execl("/bin/true", "true", nullptr); return 1;
    default: return 0;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4 || chdir(arguments[3]) != 0) return 2;
  close_range(3, ~0U, 0);  // whatever the caller left open is not ours to change
  seed_random(std::strtoull(arguments[1], nullptr, 10));
  umask(022);
  if (symlink("file0", "link") != 0 && errno != EEXIST) return 2;
  if (mkdir("folder", 0755) != 0 && errno != EEXIST) return 2;
  const long operations = std::strtol(arguments[2], nullptr, 10);
  for (long number = 0; number < operations; ++number) {
    say("%ld ", number);
    perform_one();
  }
  const std::string told = "captured " + std::to_string(captured) + "\n";
  if (write(STDERR_FILENO, told.data(), told.size()) < 0) return 2;
  return end_somehow();
}
