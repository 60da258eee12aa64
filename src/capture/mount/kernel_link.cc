#include "capture/mount/kernel_link.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace backstay::mount {

namespace {

// The number of the first message, where the kernel offers the flag; 0: it does not, or has its
// answer. A process serves one mount.
std::atomic<std::uint64_t> first_message = 0;

ssize_t read_message(int from, void* to, std::size_t bytes, void*) {
  const ssize_t got = ::read(from, to, bytes);
  fuse_in_header header{};
  fuse_init_in init{};
  constexpr std::size_t flags_end = offsetof(fuse_init_in, flags) + sizeof init.flags;
  if (got < static_cast<ssize_t>(sizeof header + flags_end)) return got;
  std::memcpy(&header, to, sizeof header);
  if (header.opcode != FUSE_INIT) return got;
  std::memcpy(&init, static_cast<const char*>(to) + sizeof header, flags_end);
  if ((init.flags & FUSE_HANDLE_KILLPRIV_V2) != 0) first_message = header.unique;
  return got;
}

ssize_t write_message(int to, iovec* parts, int count, void*) {
  const auto* header = static_cast<const fuse_out_header*>(parts[0].iov_base);
  if (header->unique != 0 && header->unique == first_message && header->error == 0 && count > 1 &&
      parts[1].iov_len >= offsetof(fuse_init_out, flags) + sizeof(std::uint32_t)) {
    static_cast<fuse_init_out*>(parts[1].iov_base)->flags |= FUSE_HANDLE_KILLPRIV_V2;
    first_message = 0;
  }
  return ::writev(to, parts, count);
}

}  // namespace

int use_kernel_link(fuse_session* session) {
  fuse_custom_io calls{};
  calls.read = read_message;
  calls.writev = write_message;
  return -fuse_session_custom_io(session, &calls, fuse_session_fd(session));
}

}  // namespace backstay::mount
