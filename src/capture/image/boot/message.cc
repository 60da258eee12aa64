#include "capture/image/boot/message.h"

namespace backstay::image {

namespace {
constexpr int32_t level_socket = 1;
constexpr int32_t type_rights = 1;
constexpr uint64_t rights_bytes = 20;
constexpr long no_signal = 0x4000;   // MSG_NOSIGNAL
constexpr long no_descriptor = -77;  // EBADFD
}  // namespace

long receive(long fd, void* bytes, uint64_t size, long flags, long& descriptor) {
  Rights rights{};
  Piece piece{bytes, size};
  Header header{nullptr, 0, 0, &piece, 1, &rights, sizeof rights, 0, 0};
  long got = interrupted;
  while (got == interrupted) {
    header.control_bytes = sizeof rights;
    got = system_call(__NR_recvmsg, fd, address_of(&header), flags);
  }
  const bool came = header.control_bytes >= rights_bytes && rights.level == level_socket &&
                    rights.type == type_rights;
  descriptor = got > 0 && came ? rights.descriptor : -1;
  return got;
}

void send_descriptor(long fd, long descriptor) {
  char byte = 0;
  Rights rights{rights_bytes, level_socket, type_rights, static_cast<int32_t>(descriptor), 0};
  Piece piece{&byte, 1};
  Header header{nullptr, 0, 0, &piece, 1, &rights, sizeof rights, 0, 0};
  while (system_call(__NR_sendmsg, fd, address_of(&header), no_signal) == interrupted) {
  }
}

long receive_descriptor(long fd) {
  char byte = 0;
  long descriptor = -1;
  const long got = receive(fd, &byte, 1, 0, descriptor);
  return descriptor >= 0 ? descriptor : got < 0 ? got : no_descriptor;
}

}  // namespace backstay::image
