// Calls on what a file is, beside its bytes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "capture/mount/file_system.h"

namespace backstay::mount {

namespace {

void reply_attributes(fuse_req_t request, Node& node) {
  struct stat found = {};
  const int error = look(node, found);
  error == 0 ? (void)fuse_reply_attr(request, &found, kernel_keeps_s)
             : (void)fuse_reply_err(request, error);
}

void getattr(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  reply_attributes(request, *file_system(request).node(ino));
}

// --- changes: what is pending comes home first; of a file in memory, mode and owner are those of
// the file at its place, size and times those of memory

int set_mode(Node& node, mode_t mode) {
  return ::chmod(link_to(node.at()).c_str(), mode) == 0 ? 0 : errno;
}

int set_owner(Node& node, const struct stat& wanted, int which) {
  const uid_t user = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t group = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  const int at = node.at()->get();
  return ::fchownat(at, "", user, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

int set_size(FileSystem& fs, const std::shared_ptr<Node>& node, off_t bytes, Handle* handle) {
  std::shared_lock<std::shared_mutex> lock;
  if (const int error = lock_for_change(fs, node, lock)) return error;
  if (node->state == State::in_memory) {
    if (handle == nullptr && !is_allowed(*node, W_OK)) return errno;
    if (::ftruncate(node->memory.get(), bytes) != 0) return errno;
    fs.keeper.count(*node, static_cast<std::uint64_t>(bytes));
    return 0;
  }
  if (handle == nullptr) return ::truncate(link_to(node->place).c_str(), bytes) == 0 ? 0 : errno;
  const SharedFd real = real_of(fs, *handle);
  return real != nullptr && ::ftruncate(real->get(), bytes) == 0 ? 0 : errno;
}

timespec time_to_set(const timespec& given, int which, int set, int now) {
  if ((which & now) != 0) return {0, UTIME_NOW};
  if ((which & set) != 0) return given;
  return {0, UTIME_OMIT};
}

int set_times(FileSystem& fs, const std::shared_ptr<Node>& node, const struct stat& wanted,
              int which) {
  const timespec times[2] = {
      time_to_set(wanted.st_atim, which, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
      time_to_set(wanted.st_mtim, which, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW)};
  std::shared_lock<std::shared_mutex> lock;
  if (const int error = lock_for_change(fs, node, lock)) return error;
  if (node->state == State::in_memory)
    return ::futimens(node->memory.get(), times) == 0 ? 0 : errno;
  struct stat found = {};
  if (::fstat(node->place->get(), &found) == 0 && S_ISLNK(found.st_mode)) {
    const std::string path = path_of(node->place->get());
    return ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
  }
  return ::utimensat(AT_FDCWD, link_to(node->place).c_str(), times, 0) == 0 ? 0 : errno;
}

// A file must not be handed in with what it was before.
int set_mode_and_owner(FileSystem& fs, const std::shared_ptr<Node>& node, const struct stat& wanted,
                       int which) {
  constexpr int owner = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
  if ((which & (FUSE_SET_ATTR_MODE | owner)) == 0) return 0;
  return fs.keeper.with_names(
      [&] { return if_pending(node); },
      [&] {
        int error = (which & FUSE_SET_ATTR_MODE) != 0 ? set_mode(*node, wanted.st_mode) : 0;
        if (error == 0 && (which & owner) != 0) error = set_owner(*node, wanted, which);
        return error;
      });
}

void setattr(fuse_req_t request, fuse_ino_t ino, struct stat* wanted, int which,
             fuse_file_info* info) {
  FileSystem& fs = file_system(request);
  const auto node = fs.node(ino);
  constexpr int times =
      FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  int error = set_mode_and_owner(fs, node, *wanted, which);
  if (error == 0 && (which & FUSE_SET_ATTR_SIZE) != 0)
    error = set_size(fs, node, wanted->st_size, info != nullptr ? &handle_of(*info) : nullptr);
  if (error == 0 && (which & times) != 0) error = set_times(fs, node, *wanted, which);
  error == 0 ? reply_attributes(request, *node) : (void)fuse_reply_err(request, error);
}

void access(fuse_req_t request, fuse_ino_t ino, int mask) {
  const std::string link = link_to(file_system(request).node(ino)->at());
  fuse_reply_err(request, ::faccessat(AT_FDCWD, link.c_str(), mask, AT_EACCESS) == 0 ? 0 : errno);
}

void statfs(fuse_req_t request, fuse_ino_t) {
  struct statvfs found = {};
  if (::fstatvfs(file_system(request).nodes.root()->place->get(), &found) != 0)
    return (void)fuse_reply_err(request, errno);
  fuse_reply_statfs(request, &found);
}

// --- extended attributes: those of the file at its place

void getxattr(fuse_req_t request, fuse_ino_t ino, const char* name, std::size_t size) {
  std::vector<char> value(size);
  const std::string link = link_to(file_system(request).node(ino)->at());
  const ssize_t bytes = ::getxattr(link.c_str(), name, value.data(), size);
  if (bytes < 0) return (void)fuse_reply_err(request, errno);
  size == 0 ? fuse_reply_xattr(request, static_cast<std::size_t>(bytes))
            : fuse_reply_buf(request, value.data(), static_cast<std::size_t>(bytes));
}

void listxattr(fuse_req_t request, fuse_ino_t ino, std::size_t size) {
  std::vector<char> names(size);
  const std::string link = link_to(file_system(request).node(ino)->at());
  const ssize_t bytes = ::listxattr(link.c_str(), names.data(), size);
  if (bytes < 0) return (void)fuse_reply_err(request, errno);
  size == 0 ? fuse_reply_xattr(request, static_cast<std::size_t>(bytes))
            : fuse_reply_buf(request, names.data(), static_cast<std::size_t>(bytes));
}

// A file that is replaced by a rename would lose them.
void setxattr(fuse_req_t request, fuse_ino_t ino, const char* name, const char* value,
              std::size_t size, int flags) {
  FileSystem& fs = file_system(request);
  const auto node = fs.node(ino);
  int error = fs.keeper.make_real(node, false);
  if (error == 0 && ::setxattr(link_to(node->at()).c_str(), name, value, size, flags) != 0)
    error = errno;
  fuse_reply_err(request, error);
}

void removexattr(fuse_req_t request, fuse_ino_t ino, const char* name) {
  FileSystem& fs = file_system(request);
  const auto node = fs.node(ino);
  int error = fs.keeper.make_real(node, false);
  if (error == 0 && ::removexattr(link_to(node->at()).c_str(), name) != 0) error = errno;
  fuse_reply_err(request, error);
}

}  // namespace

void add_attribute_calls(fuse_lowlevel_ops& calls) {
  calls.getattr = getattr;
  calls.setattr = setattr;
  calls.access = access;
  calls.statfs = statfs;
  calls.getxattr = getxattr;
  calls.listxattr = listxattr;
  calls.setxattr = setxattr;
  calls.removexattr = removexattr;
}

}  // namespace backstay::mount
