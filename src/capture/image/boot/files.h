// Questions to the file system and to /proc, without a library. Blocks on files. Any one thread.
#pragma once

#include "capture/image/boot/text.h"

namespace backstay::image {

struct FileStatus {
  uint64_t device = 0, inode = 0, bytes = 0, mtime_ns = 0;
  uint64_t special = 0;  // which device a device file is
  uint64_t names = 0;    // hard links
  uint32_t mode = 0;

  uint32_t type() const { return mode & 0170000; }
  bool is_regular() const { return type() == 0100000; }
  bool is_directory() const { return type() == 0040000; }
  bool is_device() const { return type() == 0020000; }
  bool is_pipe() const { return type() == 0010000; }
  bool is_socket() const { return type() == 0140000; }
  bool is_link() const { return type() == 0120000; }
};
bool file_status(const char* path, FileStatus& status);
// Of a link itself, where the path leads to one.
bool link_status(const char* path, FileStatus& status);
bool descriptor_status(long fd, FileStatus& status);
// When the file was made; false where the file system does not know.
bool birth_time(const char* path, uint64_t& ns);
// False of file systems that give a file another inode number each time they meet it.
bool keeps_inodes(const char* path);
// Negative: an error.
long remove_name(const char* path);
// A duplicate of the program's descriptor `number` for the control thread, which has a table of
// descriptors of its own. The caller closes it. Negative: an error.
long borrow_descriptor(uint64_t number);
// Where a link points to; false where it cannot be read or is too long.
bool read_link(const char* path, char* to, size_t room);

// Reads a file of /proc line by line. Usage: open, then next() while it is true.
class Lines {
 public:
  explicit Lines(const char* path) : fd_(sys_open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Lines() {
    if (fd_ >= 0) sys_close(fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  bool good() const { return fd_ >= 0; }
  const char* next();  // null at the end; valid until the next call

 private:
  long fd_;
  size_t at_ = 0, size_ = 0;
  char bytes_[8192] = {};
};

// Calls visit(number) for each entry of a folder whose name is a number.
template <typename Visit>
void each_number(const char* folder, Visit visit) {
  const long fd = sys_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(8) char bytes[4096] = {};
  for (;;) {
    const long size = system_call(__NR_getdents64, fd, address_of(bytes), sizeof bytes);
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      uint16_t length = 0;
      memcpy(&length, bytes + at + 16, sizeof length);
      const char* name = bytes + at + 19;
      if (*name >= '0' && *name <= '9') visit(read_decimal(name));
      at += length;
    }
  }
  sys_close(fd);
}

}  // namespace backstay::image
