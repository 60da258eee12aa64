#include "capture/files/copy.h"

#include <algorithm>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

struct Extent {
  off_t begin;
  off_t end;
};

// The first data from `offset` on. ENXIO: none.
int next_data(int fd, off_t offset, Extent& extent) {
  const long begin = raw::lseek(fd, offset, SEEK_DATA);
  if (begin < 0) return static_cast<int>(-begin);
  const long end = raw::lseek(fd, begin, SEEK_HOLE);
  if (end < 0) return static_cast<int>(-end);
  extent = {begin, end};
  return 0;
}

template <typename Each>
int for_each_extent(int fd, Each each) {
  for (off_t offset = 0;;) {
    Extent extent = {};
    const int error = next_data(fd, offset, extent);
    if (error == ENXIO) return 0;
    if (error != 0) return error;
    if (const int failed = each(extent); failed != 0) return failed;
    offset = extent.end;
  }
}

int write_all(int to, const char* bytes, std::size_t length, off_t offset) {
  while (length > 0) {
    const long written = raw::pwrite(to, bytes, length, offset);
    if (written == -EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : static_cast<int>(-written);
    bytes += written;
    length -= static_cast<std::size_t>(written);
    offset += written;
  }
  return 0;
}

constexpr std::size_t piece_bytes = 256 << 10;
char piece[piece_bytes];  // guarded by the lock

template <typename Put>
int copy_extent(int from, Extent extent, Put put) {
  while (extent.begin < extent.end) {
    const auto wanted = std::min<std::size_t>(piece_bytes, extent.end - extent.begin);
    const long got = raw::pread(from, piece, wanted, extent.begin);
    if (got == -EINTR) continue;
    if (got < 0) return static_cast<int>(-got);
    if (got == 0) return 0;
    if (const int error = put(piece, static_cast<std::size_t>(got), extent.begin)) return error;
    extent.begin += got;
  }
  return 0;
}

int put_nonzero(int to, const char* bytes, std::size_t length, off_t offset) {
  std::size_t at = 0;
  while (at < length) {
    while (at < length && bytes[at] == 0) ++at;
    const std::size_t begin = at;
    while (at < length && bytes[at] != 0) ++at;
    if (begin == at) break;
    const int error = write_all(to, bytes + begin, at - begin, offset + static_cast<off_t>(begin));
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace

int copy_data(int from, int to) {
  return for_each_extent(from, [&](Extent extent) {
    return copy_extent(from, extent, [&](const char* bytes, std::size_t length, off_t offset) {
      return write_all(to, bytes, length, offset);
    });
  });
}

int merge_data(int from, int to) {
  return for_each_extent(from, [&](Extent extent) {
    return copy_extent(from, extent, [&](const char* bytes, std::size_t length, off_t offset) {
      return put_nonzero(to, bytes, length, offset);
    });
  });
}

int reserve_data(int from, int to) {
  constexpr int keep_size = 0x01;  // FALLOC_FL_KEEP_SIZE
  const int error = for_each_extent(from, [&](Extent extent) {
    const int failed = -raw::fallocate(to, keep_size, extent.begin, extent.end - extent.begin);
    return failed == EINTR ? 0 : failed;
  });
  return error == ENOSPC || error == EDQUOT ? error : 0;
}

}  // namespace backstay::files
