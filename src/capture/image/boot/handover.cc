#include "capture/image/boot/handover.h"

#include <linux/poll.h>

#include "capture/image/boot/message.h"

namespace backstay::image::handover {

namespace {

constexpr long family_unix = 1;
constexpr long stream_closed_on_exec = 1 | 02000000;  // SOCK_STREAM | SOCK_CLOEXEC
constexpr long level_socket = 1;
constexpr long peer = 17;  // SO_PEERCRED

struct Name {
  uint16_t family = family_unix;
  char bytes[108] = {};
};
Name name;  // in the abstract name space, chosen by the kernel
uint32_t name_bytes = 0;
long door = -1;
uint32_t opened = 0;

bool is_own(long line) {
  struct {
    int32_t process, user, group;
  } other{};
  uint32_t bytes = sizeof other;
  const long told = system_call(__NR_getsockopt, line, level_socket, peer, address_of(&other),
                                address_of(&bytes));
  return told == 0 && other.process == system_call(__NR_getpid);
}

void hand_over(long control) {
  const long line = system_call(__NR_accept4, door, 0, 0, 02000000);
  if (line < 0) return;
  if (is_own(line)) {
    char byte = 0;
    send_descriptor(line, control);
    // The program that replaces this one ends this thread here.
    while (sys_read(line, &byte, 1) == interrupted) {
    }
  }
  sys_close(line);
}

}  // namespace

void open() {
  door = system_call(__NR_socket, family_unix, stream_closed_on_exec, 0);
  uint32_t bytes = sizeof name;
  if (door >= 0 && system_call(__NR_bind, door, address_of(&name), sizeof name.family) == 0 &&
      system_call(__NR_listen, door, 8) == 0 &&
      system_call(__NR_getsockname, door, address_of(&name), address_of(&bytes)) == 0) {
    name_bytes = bytes;
  }
  __atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
  wake_all(&opened);
}

void wait(long control) {
  for (;;) {
    pollfd look[2] = {{static_cast<int>(control), POLLIN, 0}, {static_cast<int>(door), POLLIN, 0}};
    system_call(__NR_poll, address_of(look), name_bytes > 0 ? 2 : 1, -1);
    if (name_bytes > 0 && look[1].revents != 0) {
      hand_over(control);
    } else if (look[0].revents != 0) {
      return;
    }
  }
}

void end() { sys_close(door); }

long take(long& line) {
  wait_while(&opened, 0);
  line = system_call(__NR_socket, family_unix, stream_closed_on_exec, 0);
  if (line < 0) return line;
  long control =
      name_bytes > 0 ? system_call(__NR_connect, line, address_of(&name), name_bytes) : -1;
  if (control == 0) control = receive_descriptor(line);
  if (control < 0) sys_close(line);
  return control;
}

}  // namespace backstay::image::handover
