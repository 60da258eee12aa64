#include "io/posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/folders.h"
#include "io/descriptor.h"

namespace backstay::io {

namespace {

// Runs `call` until it is not interrupted.
template <typename Call>
auto retried(Call call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

// Whether our alignment is enough for O_DIRECT. Unknown counts as yes.
bool alignment_is_enough([[maybe_unused]] int fd) {
#ifdef STATX_DIOALIGN
  struct statx facts {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) != 0) return true;
  if ((facts.stx_mask & STATX_DIOALIGN) == 0) return true;
  return facts.stx_dio_offset_align != 0 && facts.stx_dio_offset_align <= direct_alignment &&
         facts.stx_dio_mem_align <= direct_alignment;
#else
  return true;
#endif
}

timespec timespec_of(const Moment& moment) {
  return {static_cast<time_t>(moment.seconds), static_cast<long>(moment.nanoseconds)};
}

Moment moment_of(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

class PosixFile final : public File {
 public:
  PosixFile(Fd fd, std::string path, bool direct)
      : fd_(std::move(fd)), path_(std::move(path)), direct_(direct) {}

  Status read_at(std::uint64_t offset, std::span<std::byte> to) override {
    return read_all(fd_.get(), offset, to, direct_);
  }

  Status write_at(std::uint64_t offset, Bytes from) override {
    return write_all(fd_.get(), offset, from, direct_);
  }

  Status allocate(std::uint64_t bytes) override {
    if (bytes == 0) return {};
    const auto done =
        retried([&] { return ::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)); });
    if (done == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return {};
    return errno_error("reserve " + std::to_string(bytes) + " bytes for " + path_, errno);
  }

  Status truncate(std::uint64_t bytes) override {
    const auto done = retried([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(bytes)); });
    return done == 0 ? Status() : errno_error("set the size of " + path_, errno);
  }

  Status set_attributes(const Attributes& attributes) override {
    attributes_set_ = true;
    if (::fchmod(fd_.get(), attributes.mode) != 0) {
      return errno_error("set the mode of " + path_, errno);
    }
    const timespec times[2] = {timespec_of(attributes.accessed), timespec_of(attributes.modified)};
    if (::futimens(fd_.get(), times) != 0) return errno_error("set the times of " + path_, errno);
    return {};
  }

  // fdatasync also writes the size and the block map, all that reading the content needs; but not
  // mode and times.
  Status sync() override {
    const auto call = attributes_set_ ? ::fsync : ::fdatasync;
    const auto done = retried([&] { return call(fd_.get()); });
    return done == 0 ? Status() : errno_error("sync " + path_, errno);
  }

  Result<std::uint64_t> size() override {
    struct stat facts {};
    if (::fstat(fd_.get(), &facts) != 0) return errno_error("look at " + path_, errno);
    return static_cast<std::uint64_t>(facts.st_size);
  }

  int descriptor() const override { return fd_.get(); }
  bool direct() const override { return direct_; }

 private:
  Fd fd_;
  std::string path_;
  bool direct_;
  bool attributes_set_ = false;
};

int flags_of(Open how) {
  switch (how) {
    case Open::read:
    case Open::read_direct: return O_RDONLY | O_CLOEXEC;
    case Open::create:
    case Open::create_direct: return O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    case Open::reuse_direct: return O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  }
  return O_RDONLY | O_CLOEXEC;
}

Fd open_fd(const std::string& path, int flags) {
  return Fd(retried([&] { return ::open(path.c_str(), flags, 0600); }));
}

// A FIFO may be in the file's place; opening one to read would block until a writer comes.
Fd open_to_read(const std::string& path, int flags) {
  Fd fd = open_fd(path, flags | O_NONBLOCK);
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return fd;
  if (S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode) || S_ISCHR(facts.st_mode)) {
    errno = ENXIO;
    return Fd();
  }
  if (S_ISDIR(facts.st_mode)) {
    errno = EISDIR;
    return Fd();
  }
  ::fcntl(fd.get(), F_SETFL,
          flags & ~O_NONBLOCK & ~O_CLOEXEC);  // io_uring would not wait for the disk
  return fd;
}

// Our file may have a second name (`cp -al` of the folder, as a backup). The data is then written
// into a new file, and the other name keeps the old content.
Fd open_to_write(const std::string& path, int flags) {
  Fd fd = open_fd(path, flags & ~O_TRUNC);
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return Fd();
  if (facts.st_nlink > 1) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Fd();
    return open_fd(path, flags | O_EXCL);
  }
  if ((flags & O_TRUNC) != 0 && retried([&] { return ::ftruncate(fd.get(), 0); }) != 0) return Fd();
  return fd;
}

class PosixFileSystem final : public FileSystem {
 public:
  explicit PosixFileSystem(PosixOptions options) : options_(options) {}

  Result<std::unique_ptr<File>> open(const std::string& path, Open how) override {
    const int flags = flags_of(how);
    const bool reads = how == Open::read || how == Open::read_direct;
    const auto open = reads ? open_to_read : open_to_write;
    if (options_.direct && how != Open::read && how != Open::create) {
      Fd fd = open(path, flags | O_DIRECT);
      if (fd.valid() && alignment_is_enough(fd.get())) return file(std::move(fd), path, true);
      if (!fd.valid() && errno != EINVAL) return errno_error("open " + path, errno);
    }
    Fd fd = open(path, flags);
    // It is not a file of ours: treated like a file with wrong bytes.
    if (reads && !fd.valid() && errno == ENXIO)
      return Error(Code::corrupt, path + " is no file but a pipe, a socket or a device");
    if (!fd.valid()) return errno_error("open " + path, errno);
    return file(std::move(fd), path, false);
  }

  Status make_directories(const std::string& path) override { return make_folders(path); }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return errno_error("rename " + from + " to " + to, errno);
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return {};
    if (errno == EISDIR && ::rmdir(path.c_str()) == 0) return {};
    return errno_error("remove " + path, errno);
  }

  Result<Facts> look(const std::string& path) override {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) return errno_error("look at " + path, errno);
    constexpr mode_t permissions = 07777;
    return Facts{S_ISREG(facts.st_mode),
                 S_ISDIR(facts.st_mode),
                 facts.st_dev,
                 facts.st_ino,
                 static_cast<std::uint64_t>(facts.st_size),
                 {facts.st_mode & permissions, moment_of(facts.st_atim), moment_of(facts.st_mtim)},
                 moment_of(facts.st_ctim)};
  }

  Result<std::vector<Entry>> list(const std::string& path) override;

  // A file system that cannot sync a folder returns EINVAL; there is no other way to sync it.
  Status sync_directory(const std::string& path) override {
    const Fd fd = open_fd(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!fd.valid()) return errno_error("open the folder " + path, errno);
    if (retried([&] { return ::fsync(fd.get()); }) == 0 || errno == EINVAL) return {};
    return errno_error("sync the folder " + path, errno);
  }

 private:
  static std::unique_ptr<File> file(Fd fd, const std::string& path, bool direct) {
    return std::make_unique<PosixFile>(std::move(fd), path, direct);
  }
  PosixOptions options_;
};

bool is_directory(DIR* dir, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat facts {};
  return ::fstatat(::dirfd(dir), entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(facts.st_mode);
}

Result<std::vector<Entry>> PosixFileSystem::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (dir == nullptr) return errno_error("list " + path, errno);
  std::vector<Entry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") entries.push_back({name, is_directory(dir.get(), *entry)});
    errno = 0;
  }
  if (errno != 0) return errno_error("list " + path, errno);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace

std::unique_ptr<FileSystem> make_posix_filesystem(PosixOptions options) {
  return std::make_unique<PosixFileSystem>(options);
}

FileSystem& posix_filesystem() {
  static PosixFileSystem* const fs = new PosixFileSystem({});  // never destroyed, on purpose
  return *fs;
}

}  // namespace backstay::io
