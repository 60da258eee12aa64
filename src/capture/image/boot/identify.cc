#include "capture/image/boot/identify.h"

#include <linux/mman.h>

#include "capture/image/boot/elf.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

namespace {

// Larger files are known by length and time of change: reading them would cost more than the cut.
constexpr uint64_t hashed_max = 16 << 20;

uint64_t hash_of(long fd, uint64_t bytes) {
  if (bytes == 0 || bytes > hashed_max) return 0;
  const long at = sys_map(0, bytes, PROT_READ, MAP_PRIVATE, fd);
  if (at < 0) return 0;
  const uint64_t hash = checksum_of(reinterpret_cast<const void*>(at), bytes);
  sys_unmap(static_cast<uint64_t>(at), bytes);
  return hash;
}

// What was learned of a file stays: a cut should not read the same libraries again while the
// program stands still.
File known[1024];
uint32_t known_count = 0;

bool find_known(const FileStatus& status, bool content, File& file) {
  for (uint32_t i = 0; i < known_count; ++i) {
    const File& one = known[i];
    if (one.inode == status.inode && one.device == status.device && one.bytes == status.bytes &&
        one.mtime_ns == status.mtime_ns && (!content || one.path != 0)) {
      file = one;
      if (!content) file.hash = 0;
      return true;
    }
  }
  return false;
}

// Here `path` says whether the content was looked at.
void remember(const File& file, bool content) {
  if (known_count == sizeof known / sizeof known[0]) known_count = 0;
  known[known_count] = file;
  known[known_count++].path = content ? 1 : 0;
}

bool same_id(const File& a, const File& b) {
  return a.build_id_bytes == b.build_id_bytes &&
         memcmp(a.build_id, b.build_id, a.build_id_bytes) == 0;
}

}  // namespace

void identify(const char* path, const FileStatus& status, bool content, File& file,
              Trouble& trouble) {
  if (find_known(status, content, file)) return;
  file.device = status.device;
  file.inode = status.inode;
  file.bytes = status.bytes;
  file.mtime_ns = status.mtime_ns;
  const long fd = sys_open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    trouble << path << " is mapped, and cannot be read (error " << -fd << ")";
    return;
  }
  file.build_id_bytes = read_build_id(fd, file.build_id, build_id_max);
  if (content && file.build_id_bytes == 0) file.hash = hash_of(fd, status.bytes);
  sys_close(fd);
  remember(file, content);
}

void compare(const char* path, const File& recorded, bool content, Trouble& trouble) {
  FileStatus status;
  if (!file_status(path, status)) {
    trouble << path << " is missing: the program had it mapped";
    return;
  }
  File now{};
  identify(path, status, recorded.hash != 0, now, trouble);
  if (!trouble.empty()) return;
  if (!same_id(now, recorded)) {
    trouble << path << " is another build than the one that the image was saved with";
  } else if (recorded.hash != 0 && now.hash != recorded.hash) {
    trouble << path << " has another content than when the image was saved";
  } else if (recorded.build_id_bytes > 0 || recorded.hash != 0) {
    return;
  } else if (content && (recorded.bytes != now.bytes || recorded.mtime_ns != now.mtime_ns)) {
    trouble << path << " was changed since the image was saved";
  } else if (recorded.bytes > now.bytes) {
    trouble << path << " is shorter than when the image was saved";
  }
}

}  // namespace backstay::image
