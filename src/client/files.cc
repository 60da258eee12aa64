#include "client/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/folders.h"
#include "format/object.h"
#include "io/descriptor.h"

namespace backstay::client {

namespace {

// '#' is not allowed in names, so this is never the name of a routed file.
std::string beside(const std::string& path) { return path + "#restart"; }

std::string name_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// The file vanishes if the process is killed. Invalid if the file system has no such files (NFS) or
// if /proc, which names them later, is missing.
Fd open_nameless(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  struct stat named {};
  if (fd.valid() && ::stat(name_of(fd.get()).c_str(), &named) != 0) fd.reset();
  return fd;
}

bool allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-%+").find(c) != std::string_view::npos;
}

// publish() could not put the file in the place of a folder.
Status check_place(const std::string& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || !S_ISDIR(there.st_mode)) return {};
  return Error(Code::invalid, "a folder is in the place of the routed file " + path +
                                  ": move it away and restart again");
}

std::uint64_t free_bytes(int fd) {
  struct statvfs disk {};
  return ::fstatvfs(fd, &disk) == 0 ? std::uint64_t{disk.f_bavail} * disk.f_frsize : 0;
}

// Reserves all of it now: a disk that turns out to be full during delivery would leave regions half
// restored.
Status reserve(int fd, const std::string& path, std::uint64_t bytes) {
  if (bytes == 0) return {};
  const std::uint64_t before = free_bytes(fd);
  int why = 0;
  do {  // NOLINT(cppcoreguidelines-avoid-do-while)
    why = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (why == EINTR);
  if (why == 0) return {};
  const Error refused = errno_error("reserve room", why);
  return Error(refused.code(),
               "no room for the routed file " + path + ": it needs " + std::to_string(bytes) +
                   " bytes beside the one that is there, " + std::to_string(before) +
                   " are free on that disk (" + refused.message() +
                   "); make room and restart again",
               why);
}

}  // namespace

Status check_file_name(const std::string& name) {
  if (name.size() > format::region_name_max) {
    return Error(Code::too_large, "a file name of " + std::to_string(name.size()) +
                                      " bytes; at most 200 are allowed");
  }
  if (name.empty() || name == "." || name == ".." ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    return Error(Code::invalid,
                 "the file name '" + name + "' must be of letters, digits and ._-%+ (no folders)");
  }
  return {};
}

Result<std::string> RoutedFiles::route(const std::string& name, std::size_t path_bytes) {
  BACKSTAY_TRY(check_file_name(name));
  if (path_of(name).size() >= path_bytes) {
    return Error(Code::too_large, "the path " + path_of(name) + " needs " +
                                      std::to_string(path_of(name).size() + 1) +
                                      " bytes with its final zero, there is room for " +
                                      std::to_string(path_bytes));
  }
  BACKSTAY_TRY(make_chosen_folder(folder_, "storage.dir"));
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) {
    return errno_error("write to the folder " + folder_, errno);
  }
  names_.insert(name);
  return path_of(name);
}

Result<OpenFile> open_routed(const std::string& path) {
  OpenFile file;
  file.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.fd.valid() || ::fstat(file.fd.get(), &info) != 0) {
    const int why = errno;
    return Error(Code::invalid,
                 errno_error("the routed file " + path + " cannot be read", why).message(), why);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::invalid, "the routed file " + path + " is no regular file");
  }
  file.bytes = static_cast<std::uint64_t>(info.st_size);
  file.mode = info.st_mode & 07777;
  return file;
}

Result<ReturningFile> ReturningFile::create(const std::string& path, std::uint64_t bytes,
                                            std::uint32_t mode) {
  BACKSTAY_TRY(check_place(path));
  ReturningFile file;
  file.path_ = path;
  // There may be the rest of a restart that was killed, a link, through which we would write, or a
  // pipe, which would block us.
  ::unlink(beside(path).c_str());
  file.fd_ = open_nameless(parent_of(path));
  file.nameless_ = file.fd_.valid();
  if (!file.nameless_)
    file.fd_.reset(::open(beside(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.fd_.valid()) return errno_error("create " + beside(path), errno);
  BACKSTAY_TRY(reserve(file.fd_.get(), path, bytes));
  if (::fchmod(file.fd_.get(), mode) != 0) return errno_error("prepare " + beside(path), errno);
  return file;
}

ReturningFile::~ReturningFile() {
  if (fd_.valid()) ::unlink(beside(path_).c_str());
}

Status ReturningFile::give_name() const {
  if (!nameless_) return {};
  if (::linkat(AT_FDCWD, name_of(fd_.get()).c_str(), AT_FDCWD, beside(path_).c_str(),
               AT_SYMLINK_FOLLOW) == 0)
    return {};
  return errno_error("create " + beside(path_), errno);
}

Status ReturningFile::publish() {
  BACKSTAY_TRY(give_name());
  if (std::rename(beside(path_).c_str(), path_.c_str()) != 0) {
    return errno_error("put " + path_ + " back", errno);
  }
  fd_.reset();
  return {};
}

Status read_routed(int fd, std::uint64_t offset, std::span<std::byte> to) {
  const Status read = io::read_all(fd, offset, to);
  if (read.ok()) return {};
  if (read.error().code() == Code::corrupt) {
    return Error(Code::invalid, "a routed file became shorter while it was saved");
  }
  return read.error().context("a routed file");
}

Status write_routed(int fd, std::uint64_t offset, Bytes from) {
  const Status written = io::write_all(fd, offset, from);
  return written.ok() ? Status() : Status(written.error().context("a routed file"));
}

}  // namespace backstay::client
