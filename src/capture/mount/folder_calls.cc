// Listing folders.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "capture/mount/file_system.h"

namespace backstay::mount {

namespace {

struct Listing {
  explicit Listing(DIR* opened) : folder(opened) {}
  ~Listing() {
    BACKSTAY_CHECK(mutex.try_lock());  // no call goes on with it
    mutex.unlock();
    ::closedir(folder);
  }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  DIR* const folder;
  std::mutex mutex;
  off_t offset = 0;
  dirent* next = nullptr;  // read, and not told yet
};

Listing& listing_of(const fuse_file_info& info) { return *reinterpret_cast<Listing*>(info.fh); }

void opendir(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  const int at = file_system(request).node(ino)->place->get();
  const int fd = ::openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : ::fdopendir(fd);
  if (folder == nullptr) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return (void)fuse_reply_err(request, error);
  }
  auto listing = std::make_unique<Listing>(folder);
  info->fh = reinterpret_cast<std::uint64_t>(listing.get());
  if (fuse_reply_open(request, info) != -ENOENT) (void)listing.release();
}

// A file that was brought home keeps the number that programs have seen.
std::uint64_t number_of(FileSystem& fs, const Listing& listing, const dirent& entry) {
  struct stat folder = {};
  if (::fstat(::dirfd(listing.folder), &folder) != 0) return entry.d_ino;
  const auto node = fs.nodes.at({folder.st_dev, entry.d_ino});
  return node == nullptr ? entry.d_ino : node->number;
}

// Adds entries until `to` is full or there are no more. Returns an error number.
int list(fuse_req_t request, Listing& listing, std::vector<char>& to, std::size_t& used) {
  for (;;) {
    if (listing.next == nullptr) {
      errno = 0;
      listing.next = ::readdir(listing.folder);
      if (listing.next == nullptr) return errno;
    }
    const dirent& entry = *listing.next;
    if (!is_hidden(entry.d_name)) {
      struct stat stat = {};
      stat.st_ino = number_of(file_system(request), listing, entry);
      stat.st_mode = static_cast<mode_t>(entry.d_type) << 12;
      const std::size_t bytes = fuse_add_direntry(request, to.data() + used, to.size() - used,
                                                  entry.d_name, &stat, entry.d_off);
      if (bytes > to.size() - used) return 0;
      used += bytes;
    }
    listing.offset = entry.d_off;
    listing.next = nullptr;
  }
}

// Fills `to` from `offset` on. Returns an error number.
int list_from(fuse_req_t request, Listing& listing, off_t offset, std::vector<char>& to,
              std::size_t& used) {
  const std::lock_guard guard(listing.mutex);
  if (offset != listing.offset) {
    ::seekdir(listing.folder, offset);
    listing.next = nullptr;
    listing.offset = offset;
  }
  return list(request, listing, to, used);
}

void readdir(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
  std::vector<char> to(size);
  std::size_t used = 0;
  const int error = list_from(request, listing_of(*info), offset, to, used);
  error != 0 && used == 0 ? (void)fuse_reply_err(request, error)
                          : (void)fuse_reply_buf(request, to.data(), used);
}

void releasedir(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  delete &listing_of(*info);
  fuse_reply_err(request, 0);
}

void fsyncdir(fuse_req_t request, fuse_ino_t, int datasync, fuse_file_info* info) {
  const int fd = ::dirfd(listing_of(*info).folder);
  fuse_reply_err(request, (datasync != 0 ? ::fdatasync(fd) : ::fsync(fd)) == 0 ? 0 : errno);
}

}  // namespace

void add_folder_calls(fuse_lowlevel_ops& calls) {
  calls.opendir = opendir;
  calls.readdir = readdir;
  calls.releasedir = releasedir;
  calls.fsyncdir = fsyncdir;
}

}  // namespace backstay::mount
