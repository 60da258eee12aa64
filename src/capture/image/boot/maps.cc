#include "capture/image/boot/maps.h"

#include <linux/mman.h>

namespace backstay::image {

// start-end rwxp offset major:minor inode   name
bool read_mapping(const char* line, Mapping& mapping) {
  const char* at = line;
  mapping.start = read_hex(at);
  if (*at++ != '-') return false;
  mapping.end = read_hex(at);
  if (*at++ != ' ') return false;
  mapping.protection = (at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) |
                       (at[2] == 'x' ? PROT_EXEC : 0);
  mapping.shared = at[3] == 's';
  at += 5;
  mapping.offset = read_hex(at);
  ++at;
  const uint64_t major = read_hex(at);
  ++at;
  const uint64_t minor = read_hex(at);
  // As stat() encodes them.
  mapping.device = (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & ~0xffULL) << 12);
  ++at;
  mapping.inode = read_decimal(at);
  while (*at == ' ') ++at;
  copy_text(mapping.name, sizeof mapping.name, at);
  return true;
}

bool read_map(Row<char>& lines) {
  const long fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  long got = fd;
  while (got >= 0 && lines.size() < lines.room()) {
    got = sys_read(fd, lines.end(), lines.room() - lines.size());
    if (got <= 0) break;
    lines.resize(lines.size() + static_cast<uint64_t>(got));
  }
  sys_close(fd);
  return got == 0;
}

}  // namespace backstay::image
