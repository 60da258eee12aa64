// Calls on the bytes of a file that is open.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "capture/files/counts.h"
#include "capture/mount/file_system.h"

namespace backstay::mount {

namespace {

// Where the bytes are now, to be read. The node's lock is held.
SharedFd readable(FileSystem& fs, Handle& handle, int& memory) {
  memory = handle.node->memory.get();
  return memory >= 0 ? nullptr : real_of(fs, handle);
}

void read(fuse_req_t request, fuse_ino_t ino, std::size_t bytes, off_t offset,
          fuse_file_info* info) {
  FileSystem& fs = file_system(request);
  const auto node = fs.node(ino);
  std::shared_lock shared(node->lock);
  node->changed.wait(shared, [&] { return !node->moving || node->state != State::at_place; });
  int memory = -1;
  const SharedFd real = readable(fs, handle_of(*info), memory);
  if (memory < 0 && real == nullptr) return (void)fuse_reply_err(request, errno);
  fuse_bufvec from = FUSE_BUFVEC_INIT(bytes);
  from.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  from.buf[0].fd = memory >= 0 ? memory : real->get();
  from.buf[0].pos = offset;
  fuse_reply_data(request, &from, FUSE_BUF_NO_SPLICE);
}

// Returns the bytes written, or minus an error number.
ssize_t write_to(int file, fuse_bufvec& from, off_t offset) {
  fuse_bufvec to = FUSE_BUFVEC_INIT(fuse_buf_size(&from));
  to.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  to.buf[0].fd = file;
  to.buf[0].pos = offset;
  return fuse_buf_copy(&to, &from, static_cast<fuse_buf_copy_flags>(0));
}

// -EAGAIN: memory takes no more; the file has to go on at its place.
ssize_t write_somewhere(FileSystem& fs, Handle& handle, fuse_bufvec& from, off_t offset) {
  const auto& node = handle.node;
  std::shared_lock<std::shared_mutex> lock;
  if (const int error = lock_for_change(fs, node, lock)) return -error;
  handle.closing = false;
  if (node->state == State::at_place) {
    const SharedFd real = real_of(fs, handle);
    return real == nullptr ? -errno : write_to(real->get(), from, offset);
  }
  const std::uint64_t end = static_cast<std::uint64_t>(offset) + fuse_buf_size(&from);
  const std::uint64_t counted = node->counted.load();
  if (end > counted && !fs.keeper.has_room(end - counted)) return -EAGAIN;
  const files::CountedWrite counted_write(fuse_buf_size(&from));
  const ssize_t written = write_to(node->memory.get(), from, offset);
  if (written == -ENOSPC || written == -ENOMEM) return -EAGAIN;
  if (written > 0) fs.keeper.count(*node, static_cast<std::uint64_t>(offset + written));
  return counted_write.done(written);
}

void write_buf(fuse_req_t request, fuse_ino_t, fuse_bufvec* from, off_t offset,
               fuse_file_info* info) {
  FileSystem& fs = file_system(request);
  Handle& handle = handle_of(*info);
  ssize_t written = write_somewhere(fs, handle, *from, offset);
  while (written == -EAGAIN) {
    const files::CountedWait waits(files::Waited::room);
    const int error = fs.keeper.make_real(handle.node, false);
    written = error != 0 ? -error : write_somewhere(fs, handle, *from, offset);
  }
  written >= 0 ? (void)fuse_reply_write(request, static_cast<std::size_t>(written))
               : (void)fuse_reply_err(request, static_cast<int>(-written));
}

// Returns an error number.
int sync(FileSystem& fs, Handle& handle, bool only_data) {
  if (const int error = fs.keeper.sync(handle.node)) return error;
  const std::shared_lock shared(handle.node->lock);
  if (handle.node->state != State::at_place) return 0;
  const SharedFd real = real_of(fs, handle);
  if (real == nullptr) return errno;
  return (only_data ? ::fdatasync(real->get()) : ::fsync(real->get())) == 0 ? 0 : errno;
}

void fsync(fuse_req_t request, fuse_ino_t, int datasync, fuse_file_info* info) {
  fuse_reply_err(request, sync(file_system(request), handle_of(*info), datasync != 0));
}

// Memory knows two ways of allocating; others are the real file system's. Returns an error number.
int allocate(FileSystem& fs, Handle& handle, int mode, off_t offset, off_t bytes) {
  constexpr int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const auto end = static_cast<std::uint64_t>(offset + bytes);
  const bool in_memory = (mode == 0 || mode == FALLOC_FL_KEEP_SIZE || mode == punch) &&
                         (mode == punch || fs.keeper.has_room(end));
  if (!in_memory)
    if (const int error = fs.keeper.make_real(handle.node, false)) return error;
  std::shared_lock<std::shared_mutex> lock;
  if (const int error = lock_for_change(fs, handle.node, lock)) return error;
  Node& node = *handle.node;
  const SharedFd real = node.state == State::at_place ? real_of(fs, handle) : nullptr;
  const int file = real != nullptr ? real->get() : node.memory.get();
  if (::fallocate(file, mode, offset, bytes) != 0) return errno;
  if (real == nullptr && mode != punch) fs.keeper.count(node, end);
  return 0;
}

void fallocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t bytes,
               fuse_file_info* info) {
  fuse_reply_err(request, allocate(file_system(request), handle_of(*info), mode, offset, bytes));
}

}  // namespace

void add_file_calls(fuse_lowlevel_ops& calls) {
  calls.read = read;
  calls.write_buf = write_buf;
  calls.fsync = fsync;
  calls.fallocate = fallocate;
}

}  // namespace backstay::mount
