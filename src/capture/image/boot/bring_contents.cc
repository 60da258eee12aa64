#include "capture/image/boot/areas.h"
#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/journals.h"

namespace backstay::image {

namespace {

constexpr long keep_size = 1;        // FALLOC_FL_KEEP_SIZE
constexpr long punch_hole = 2;       // FALLOC_FL_PUNCH_HOLE
constexpr long missing = -2;         // ENOENT
constexpr long no_room = -28;        // ENOSPC
constexpr long not_supported = -95;  // EOPNOTSUPP

// A link, or another file that has more names, may have come to the path since the cut. Bytes that
// are written there would be another file's.
bool belongs_to_others(const char* path, const File& file) {
  FileStatus now;
  if (!link_status(path, now)) return false;
  const bool same = now.device == file.device && now.inode == file.inode;
  return now.is_link() || (now.is_regular() && !same && now.names > 1);
}

long open_to_write(const char* path, const File& file, uint32_t mode) {
  if (belongs_to_others(path, file)) {
    const long failed = remove_name(path);
    if (failed < 0) return failed;
  }
  long fd = sys_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd != missing) return fd;
  fd = sys_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) system_call(__NR_fchmod, fd, static_cast<long>(mode));
  return fd;
}

// Bytes [start, end) of the file.
struct Piece {
  uint64_t start, end;
};
Piece piece_of(const Area& area, const Run& run, uint64_t bytes) {
  const uint64_t start = run.address - area.start;
  const uint64_t end = start + bytes_of(run);
  return {start, end < bytes ? end : bytes};
}

long allocate(long fd, long how, const Piece& piece) {
  if (piece.start >= piece.end) return 0;
  return system_call(__NR_fallocate, fd, how, static_cast<long>(piece.start),
                     static_cast<long>(piece.end - piece.start));
}

// Where the disk has no room, nothing is overwritten yet.
long make_room(long fd, const Area& area, const Runs& runs, uint64_t bytes) {
  for (const Run& run : runs) {
    const long failed = allocate(fd, keep_size, piece_of(area, run, bytes));
    if (failed != 0) return failed == not_supported ? 0 : failed;
  }
  return 0;
}

long write_piece(long fd, const Area& area, const Piece& piece) {
  for (uint64_t at = piece.start; at < piece.end;) {
    const long wrote = system_call(__NR_pwrite64, fd, static_cast<long>(area.start + at),
                                   static_cast<long>(piece.end - at), static_cast<long>(at));
    if (wrote <= 0) return wrote == 0 ? -5 /* EIO */ : wrote;
    at += static_cast<uint64_t>(wrote);
  }
  return 0;
}

// The area's memory is zeros there.
long make_hole(long fd, const Area& area, const Piece& piece) {
  const long failed = allocate(fd, keep_size | punch_hole, piece);
  return failed == not_supported ? write_piece(fd, area, piece) : failed;
}

long write_all(long fd, const Area& area, const Runs& runs, uint64_t bytes) {
  Piece hole{0, bytes};
  for (const Run& run : runs) {
    const Piece data = piece_of(area, run, bytes);
    long failed = make_hole(fd, area, {hole.start, data.start});
    if (failed == 0) failed = write_piece(fd, area, data);
    if (failed != 0) return failed;
    hole.start = data.end;
  }
  const long failed = make_hole(fd, area, hole);
  return failed != 0 ? failed : system_call(__NR_ftruncate, fd, static_cast<long>(bytes));
}

bool has_descriptor(const Tables& tables, const char* path) {
  for (const Descriptor& one : tables.descriptors) {
    if (same_text(tables.text(one.path), path)) return true;
  }
  return false;
}

// One that the image does not have was not there at the cut. It is of a later transaction.
void remove_later_journals(const Tables& tables, const Area& area, Trouble& trouble) {
  const char* database = tables.text(tables.files[area.file].path);
  for (uint32_t kind = 0; kind < journals::kinds; ++kind) {
    const char* path = journals::beside(database, kind);
    if (contents::holds(tables, path) || has_descriptor(tables, path)) continue;
    if (!journals::begins_as_one(path, kind)) continue;
    const long failed = remove_name(path);
    if (failed < 0) trouble << path << " cannot be removed (error " << -failed << ")";
  }
}

Text reason(long failed) {
  Text text;
  if (failed == no_room) return text << "the disk is full";
  return text << "error " << -failed;
}

void write_one(const Tables& tables, const Area& area, Trouble& trouble) {
  const File& file = tables.files[area.file];
  const char* path = tables.text(file.path);
  const long fd = open_to_write(path, file, static_cast<uint32_t>(area.object));
  const Runs runs = runs_of(tables.runs, area);
  long failed = fd < 0 ? fd : make_room(fd, area, runs, file.bytes);
  if (failed == 0) failed = write_all(fd, area, runs, file.bytes);
  if (fd >= 0) sys_close(fd);
  if (failed < 0) trouble << path << " cannot be written as it was: " << reason(failed).c_str();
}

}  // namespace

void write_contents(const Tables& tables, Trouble& trouble) {
  for (const Area& area : tables.areas) {
    if (!is_content(area)) continue;
    if (trouble.empty()) write_one(tables, area, trouble);
    sys_unmap(area.start, area.end - area.start);
  }
  for (const Area& area : tables.areas) {
    if (is_content(area) && trouble.empty()) remove_later_journals(tables, area, trouble);
  }
}

}  // namespace backstay::image
