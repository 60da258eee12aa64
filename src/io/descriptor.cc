#include "io/descriptor.h"

#include <unistd.h>

#include <cerrno>

#include "io/transfer.h"

namespace backstay::io {

namespace {

// `call` makes one pread or pwrite of the transfer's next part.
template <typename Call>
Status transfer_all(Transfer transfer, Call call) {
  if (transfer.size == 0) return {};
  for (;;) {
    const ssize_t moved = call(transfer);
    BACKSTAY_ASSIGN(const bool complete, advance(transfer, moved < 0 ? -errno : moved));
    if (complete) return {};
    if (transfer.should_pause()) pause_a_millisecond();
  }
}

}  // namespace

Status read_all(int fd, std::uint64_t offset, std::span<std::byte> to, bool direct) {
  return transfer_all({Direction::read, direct, offset, to.size()}, [&](const Transfer& t) {
    return ::pread(fd, to.data() + t.done, t.next_bytes(), static_cast<off_t>(t.at()));
  });
}

Status write_all(int fd, std::uint64_t offset, Bytes from, bool direct) {
  return transfer_all({Direction::write, direct, offset, from.size()}, [&](const Transfer& t) {
    return ::pwrite(fd, from.data() + t.done, t.next_bytes(), static_cast<off_t>(t.at()));
  });
}

}  // namespace backstay::io
