// Registering files in a ring of io_uring (liburing). The ring has the file of each descriptor from
// then on: what it writes there later would not follow the descriptor when that is closed, or led
// from memory to the place of its file. So these files become real first. liburing makes its
// system calls without libc, so only its functions can be seen, and none of a program that is
// linked with it statically.
#include "capture/files/capture.h"
#include "capture/files/export.h"

namespace backstay::files {
namespace {

void make_descriptors_real(const int* files, unsigned count) {
  if (!is_anything_captured() || files == nullptr) return;
  for (unsigned number = 0; number < count; ++number) {
    if (files[number] >= 0) make_descriptor_real(files[number]);
  }
}

}  // namespace

EXPORT(int, io_uring_register_files, (void* ring, const int* files, unsigned count)) {
  make_descriptors_real(files, count);
  return NEXT(io_uring_register_files)(ring, files, count);
}

EXPORT(int, io_uring_register_files_tags,
       (void* ring, const int* files, const void* tags, unsigned count)) {
  make_descriptors_real(files, count);
  return NEXT(io_uring_register_files_tags)(ring, files, tags, count);
}

EXPORT(int, io_uring_register_files_update,
       (void* ring, unsigned at, const int* files, unsigned count)) {
  make_descriptors_real(files, count);
  return NEXT(io_uring_register_files_update)(ring, at, files, count);
}

EXPORT(int, io_uring_register_files_update_tag,
       (void* ring, unsigned at, const int* files, const void* tags, unsigned count)) {
  make_descriptors_real(files, count);
  return NEXT(io_uring_register_files_update_tag)(ring, at, files, tags, count);
}

}  // namespace backstay::files
