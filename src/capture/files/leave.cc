#include "capture/files/leave.h"

#include <sys/single_threaded.h>

#include "capture/files/copy.h"
#include "capture/files/descriptors.h"
#include "capture/files/raw.h"
#include "capture/files/rules.h"

namespace backstay::files {
namespace {

constexpr int add_seals = 1033;  // F_ADD_SEALS
constexpr int get_seals = 1034;
constexpr int all_writes = 0x0002 | 0x0004 | 0x0008;  // shrink, grow, write
constexpr int status_flags = O_APPEND | O_NONBLOCK | O_NOATIME;

void forget_unseen_ends(Table& table, Opening& opening) {
  for (int fd = 0; (fd = table.next_descriptor(opening, fd)) >= 0; ++fd) {
    if (!leads_to(fd, *opening.file)) table.unbind(fd);
  }
}

// `to` continues where the descriptors of this opening are, and replaces them.
void replace_descriptors(Table& table, Opening& opening, int to) {
  forget_unseen_ends(table, opening);
  int fd = table.next_descriptor(opening, 0);
  if (fd < 0) return;
  raw::lseek(to, raw::lseek(fd, 0, SEEK_CUR), SEEK_SET);
  const int flags = raw::fcntl(fd, F_GETFL);
  const int old = raw::fcntl(to, F_GETFL);
  if (((flags ^ old) & status_flags) != 0) {
    raw::fcntl(to, F_SETFL, (old & ~status_flags) | (flags & status_flags));
  }
  for (; fd >= 0; fd = table.next_descriptor(opening, fd + 1)) {
    const bool closed_at_exec = (raw::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    put_at_number(to, fd, closed_at_exec ? O_CLOEXEC : 0);
  }
}

void forget_descriptors(Table& table, Opening& opening) {
  for (int fd = 0; (fd = table.next_descriptor(opening, fd)) >= 0;) table.unbind(fd);
}

// Closes the library's descriptors of a file that is out of the table.
void close_ours(Table& table, const MemoryFile& file) {
  close_descriptor(table, file.memory);
  close_descriptor(table, file.target);
  close_descriptor(table, file.hold);
}

// Flags with which an opening of a file that exists is made again.
int flags_again(int flags) { return flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW); }

}  // namespace

bool leads_to(int fd, const MemoryFile& file) {
  struct stat now = {};
  return raw::fstat(fd, &now) == 0 && raw::is_same(now, file.memory_stat);
}

StoppedWriters::StoppedWriters(Table& table, MemoryFile& file) {
  if (__libc_single_threaded) return;
  constexpr int attempts = 10000;  // a thread that is inside of a stream leaves it soon
  for (Opening* opening = table.next_opening(file); opening != nullptr && count_ < streams_max;
       opening = table.next_opening(file, opening)) {
    if (opening->stream == nullptr) continue;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (::ftrylockfile(opening->stream) == 0) {
        streams_[count_++] = opening->stream;
        break;
      }
      raw::call(SYS_sched_yield);
    }
  }
  raw::fcntl(file.memory, add_seals, all_writes);
}

StoppedWriters::~StoppedWriters() {
  while (count_ > 0) ::funlockfile(streams_[--count_]);
}

int let_writers_go_on(Table& table, MemoryFile& file) {
  if ((raw::fcntl(file.memory, get_seals) & all_writes) == 0) return 0;
  const int fresh = move_descriptor(table, raw::memfd("backstay"));
  if (fresh < 0) return -fresh;
  struct stat stat = {};
  raw::fstat(file.memory, &stat);
  const struct timespec times[2] = {stat.st_atim, stat.st_mtim};
  int error = copy_data(file.memory, fresh);
  if (error == 0) error = -raw::ftruncate(fresh, stat.st_size);
  raw::futimens(fresh, times);
  for (Opening* opening = table.next_opening(file); opening != nullptr && error == 0;
       opening = table.next_opening(file, opening)) {
    const int again = reopen(fresh, memory_flags(opening->flags));
    if (again < 0) return -again;
    replace_descriptors(table, *opening, again);
    raw::close(again);
  }
  close_descriptor(table, file.memory);
  file.memory = fresh;
  raw::fstat(fresh, &file.memory_stat);
  return error;
}

void switch_over(Table& table, MemoryFile& file, int placed) {
  for (Opening* opening = table.next_opening(file); opening != nullptr;
       opening = table.next_opening(file, opening)) {
    int to = opening->real;
    if (placed >= 0) {
      const int again = reopen(placed, flags_again(opening->flags));
      to = again >= 0 ? again : placed;
    }
    replace_descriptors(table, *opening, to);
    forget_descriptors(table, *opening);
    if (to != opening->real && to != placed) raw::close(to);
    close_descriptor(table, opening->real);
    table.remove(*opening);
  }
  close_ours(table, file);
}

void drop_opening(Table& table, Opening& opening) {
  MemoryFile& file = *opening.file;
  close_descriptor(table, opening.real);
  table.remove(opening);
  if (file.openings == 0) close_ours(table, file);
}

}  // namespace backstay::files
