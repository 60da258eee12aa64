#include "capture/image/boot/journals.h"

#include "capture/image/boot/files.h"

namespace backstay::image::journals {

namespace {

// https://sqlite.org/fileformat2.html: of a rollback journal, and of a write-ahead log. The lowest
// bit of a log's fourth byte says how its checksums are made. The index of a log has no magic.
struct Kind {
  const char* suffix;
  uint8_t magic[8];
  uint32_t magic_bytes;
  uint8_t last_bits;  // of the magic's last byte; the others may be any
};
constexpr Kind all[kinds] = {
    {"-journal", {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}, 8, 0xff},
    {"-wal", {0x37, 0x7f, 0x06, 0x82}, 4, 0xfe},
    {"-shm", {}, 0, 0},
};

}  // namespace

const char* beside(const char* database, uint32_t kind) {
  static char path[4096 + 16];
  copy_text(path, sizeof path, database);
  const size_t size = strlen(path);
  copy_text(path + size, sizeof path - size, all[kind].suffix);
  return path;
}

bool begins_as_one(const char* path, uint32_t number) {
  const Kind& kind = all[number];
  if (kind.magic_bytes == 0) return false;
  FileStatus status;
  if (!link_status(path, status) || !status.is_regular()) return false;
  const long fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  uint8_t start[sizeof kind.magic] = {};
  const long got = sys_pread(fd, start, kind.magic_bytes, 0);
  sys_close(fd);
  const uint32_t last = kind.magic_bytes - 1;
  return got == static_cast<long>(kind.magic_bytes) && memcmp(start, kind.magic, last) == 0 &&
         (start[last] & kind.last_bits) == kind.magic[last];
}

}  // namespace backstay::image::journals
