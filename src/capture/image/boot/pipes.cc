#include "capture/image/boot/pipes.h"

#include <linux/poll.h>

#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {
constexpr long bytes_left = 0x541b;  // FIONREAD
constexpr long set_pipe_size = 1031;
constexpr long get_pipe_size = 1032;
constexpr long not_blocking = 2;  // SPLICE_F_NONBLOCK

// A read ends with a message then, and would not behind a restart.
bool keeps_messages(const Tables& tables, const Descriptor& reader) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.inode == reader.inode && (one.flags & O_DIRECT) != 0) return true;
  }
  return false;
}

void copy(Tables& tables, Descriptor& reader, long from, const int* scratch, uint64_t bytes,
          Trouble& trouble) {
  const uint64_t at = tables.contents.size();
  const long copied =
      system_call(__NR_tee, from, scratch[1], static_cast<long>(bytes), not_blocking);
  tables.contents.resize(at + bytes);
  const long got = copied > 0 ? sys_read(scratch[0], &tables.contents[at], bytes) : 0;
  reader.contents = at;
  reader.contents_bytes = bytes;
  if (got == static_cast<long>(bytes) && !keeps_messages(tables, reader)) return;
  trouble << "pipe " << uint64_t{reader.number}
          << (copied > 0 ? " holds messages (O_DIRECT)" : " cannot be read");
}
}  // namespace

// By a duplicate of the descriptor: one that is opened by its name has not seen the writers go.
bool is_finished(const Descriptor& reader) {
  const long fd = borrow_descriptor(reader.number);
  pollfd look{static_cast<int>(fd), POLLIN, 0};
  const bool finished = fd >= 0 && system_call(__NR_poll, address_of(&look), 1, 0) == 1 &&
                        (look.revents & POLLHUP) != 0;
  if (fd >= 0) sys_close(fd);
  return finished;
}

void keep_pipe(Tables& tables, Descriptor& reader, Trouble& trouble) {
  Text link;
  link << "/proc/self/fd/" << uint64_t{reader.number};
  const long from = sys_open(link.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  int bytes = 0;
  system_call(__NR_ioctl, from, bytes_left, address_of(&bytes));
  const uint64_t size = bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
  reader.bytes = static_cast<uint64_t>(system_call(__NR_fcntl, from, get_pipe_size));
  int scratch[2] = {-1, -1};
  if (from < 0 || size > tables.contents.room() - tables.contents.size() ||
      system_call(__NR_pipe2, address_of(scratch), O_CLOEXEC) != 0) {
    trouble << "the content of pipe " << uint64_t{reader.number} << " cannot be read";
  } else if (size > 0) {
    system_call(__NR_fcntl, scratch[1], set_pipe_size, static_cast<long>(reader.bytes));
    copy(tables, reader, from, scratch, size, trouble);
  }
  sys_close(scratch[0]);
  sys_close(scratch[1]);
  if (from >= 0) sys_close(from);
}

}  // namespace backstay::image
