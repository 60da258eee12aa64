// The kernel gives a write lease on a file only while nobody else has it open. The lease is given
// back at once. Should somebody open the file in between, the kernel tells the holder by a signal:
// it is made SIGURG, which does nothing in a program that does not ask for it, where SIGIO would
// end the program.
#include "capture/files/exclusive.h"

#include "capture/files/raw.h"

namespace backstay::files {

bool open_elsewhere(int fd) {
  constexpr int set_signal = 10;   // F_SETSIG
  constexpr int set_lease = 1024;  // F_SETLEASE
  raw::fcntl(fd, set_signal, SIGURG);
  const int result = raw::fcntl(fd, set_lease, F_WRLCK);
  if (result == 0) raw::fcntl(fd, set_lease, F_UNLCK);
  raw::fcntl(fd, set_signal, 0);
  raw::fcntl(fd, F_SETOWN, 0);
  return result == -EAGAIN;
}

}  // namespace backstay::files
