#include "capture/image/boot/files.h"

#include <asm/stat.h>
#include <linux/stat.h>

namespace backstay::image {

namespace {

bool status_of(const char* path, long fd, int flags, FileStatus& status) {
  struct stat raw {};
  if (system_call(__NR_newfstatat, fd, address_of(path), address_of(&raw), flags) != 0) {
    return false;
  }
  status.device = raw.st_dev;
  status.inode = raw.st_ino;
  status.bytes = static_cast<uint64_t>(raw.st_size);
  status.mtime_ns = raw.st_mtime * 1'000'000'000ULL + raw.st_mtime_nsec;
  status.special = raw.st_rdev;
  status.names = raw.st_nlink;
  status.mode = raw.st_mode;
  return true;
}

}  // namespace

bool file_status(const char* path, FileStatus& status) {
  return status_of(path, AT_FDCWD, 0, status);
}

bool link_status(const char* path, FileStatus& status) {
  return status_of(path, AT_FDCWD, 0x100 /* AT_SYMLINK_NOFOLLOW */, status);
}

bool descriptor_status(long fd, FileStatus& status) {
  return status_of("", fd, 0x1000 /* AT_EMPTY_PATH */, status);
}

bool birth_time(const char* path, uint64_t& ns) {
  struct statx raw {};
  if (system_call(__NR_statx, AT_FDCWD, address_of(path), 0, STATX_BTIME, address_of(&raw)) != 0 ||
      (raw.stx_mask & STATX_BTIME) == 0) {
    return false;
  }
  ns = static_cast<uint64_t>(raw.stx_btime.tv_sec) * 1'000'000'000ULL + raw.stx_btime.tv_nsec;
  return true;
}

bool keeps_inodes(const char* path) {
  constexpr uint64_t without[] = {0xff534d42, 0xfe534d42, 0x4d44, 0x2011bab0};  // CIFS, SMB, FAT
  uint64_t status[32] = {};  // struct statfs begins with the type
  if (system_call(__NR_statfs, address_of(path), address_of(status)) != 0) return true;
  for (const uint64_t type : without) {
    if ((status[0] & 0xffffffff) == type) return false;
  }
  return true;
}

long remove_name(const char* path) {
  return system_call(__NR_unlinkat, AT_FDCWD, address_of(path), 0);
}

bool read_link(const char* path, char* to, size_t room) {
  const long size = system_call(__NR_readlinkat, AT_FDCWD, address_of(path), address_of(to),
                                static_cast<long>(room));
  if (size < 0 || size >= static_cast<long>(room)) return false;
  to[size] = 0;
  return true;
}

const char* Lines::next() {
  for (;;) {
    for (size_t i = at_; i < size_; ++i) {
      if (bytes_[i] != '\n') continue;
      bytes_[i] = 0;
      const char* line = bytes_ + at_;
      at_ = i + 1;
      return line;
    }
    memmove(bytes_, bytes_ + at_, size_ - at_);
    size_ -= at_;
    at_ = 0;
    if (fd_ < 0 || size_ + 1 >= sizeof bytes_) return nullptr;
    const long got = sys_read(fd_, bytes_ + size_, sizeof bytes_ - 1 - size_);
    if (got <= 0) return nullptr;
    size_ += static_cast<size_t>(got);
  }
}

long borrow_descriptor(uint64_t number) {
  const long self = system_call(__NR_pidfd_open, system_call(__NR_getpid), 0);
  if (self < 0) return self;
  const long fd = system_call(__NR_pidfd_getfd, self, static_cast<long>(number), 0);
  sys_close(self);
  return fd;
}

}  // namespace backstay::image
