#include "io/transfer.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "io/file.h"

namespace backstay::io {

namespace {

constexpr unsigned idle_max = 1000;

std::string where(const Transfer& transfer) {
  return std::string(transfer.direction == Direction::read ? "read" : "write") + " of " +
         std::to_string(transfer.size) + " bytes at " + std::to_string(transfer.offset);
}

Error ends_before(const Transfer& transfer) {
  return Error(Code::corrupt,
               where(transfer) + ": the file ends at " + std::to_string(transfer.at()));
}

Result<bool> refused(Transfer& transfer, int sys_errno) {
  const bool temporary = sys_errno == EINTR || sys_errno == EAGAIN;
  if (temporary && ++transfer.idle < idle_max) return false;
  return errno_error(where(transfer), sys_errno);
}

}  // namespace

std::uint32_t Transfer::next_bytes() const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(size - done, 1u << 30));
}

void pause_a_millisecond() {
  const timespec pause{0, 1'000'000};
  ::nanosleep(&pause, nullptr);
}

Result<bool> advance(Transfer& transfer, std::int64_t answer) {
  if (answer < 0) return refused(transfer, static_cast<int>(-answer));
  transfer.done += static_cast<std::uint64_t>(answer);
  transfer.idle = 0;
  if (transfer.done == transfer.size) return true;
  const bool read = transfer.direction == Direction::read;
  if (answer == 0 && read) return ends_before(transfer);
  if (answer == 0) return Error(Code::io, where(transfer) + ": the system wrote nothing", EIO);
  // A direct read stops between blocks only where the file ends.
  if (read && transfer.direct && transfer.done % direct_alignment != 0) {
    return ends_before(transfer);
  }
  return false;
}

}  // namespace backstay::io
