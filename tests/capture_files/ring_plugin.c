// A plugin with a liburing that is for it alone. Each function makes a ring and registers the file
// there in one of the ways; it returns 0 or an error number.
#define _GNU_SOURCE
#include <errno.h>
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring ring;

static int end(int result) {
  io_uring_queue_exit(&ring);
  return result < 0 ? -result : 0;
}

// Registers no file.
int asked(void) {
  if (io_uring_queue_init(2, &ring, 0) < 0) return ENOSYS;
  char probe[sizeof(struct io_uring_probe) + sizeof(struct io_uring_probe_op)] = {0};
  return end(io_uring_register(ring.ring_fd, IORING_REGISTER_PROBE, probe, 1));
}

int by_files(int fd) {
  if (io_uring_queue_init(2, &ring, 0) < 0) return ENOSYS;
  return end(io_uring_register_files(&ring, &fd, 1));
}

// The call is a jump. The ring stays.
int by_tail(int fd) {
  static int file;
  file = fd;
  if (io_uring_queue_init(2, &ring, 0) < 0) return ENOSYS;
  return io_uring_register_files(&ring, &file, 1);
}

int by_update(int fd) {
  const int none = -1;
  if (io_uring_queue_init(2, &ring, 0) < 0) return ENOSYS;
  const int error = io_uring_register_files(&ring, &none, 1);
  return end(error < 0 ? error : io_uring_register_files_update(&ring, 0, &fd, 1));
}

int by_opcode(int fd) {
  if (io_uring_queue_init(2, &ring, 0) < 0) return ENOSYS;
  return end(io_uring_register(ring.ring_fd, IORING_REGISTER_FILES, &fd, 1));
}

int by_number(int fd) {
  if (io_uring_queue_init(2, &ring, 0) < 0) return ENOSYS;
  return end((int)syscall(SYS_io_uring_register, ring.ring_fd, IORING_REGISTER_FILES, &fd, 1));
}
