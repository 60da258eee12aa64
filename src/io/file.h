// The operating system's files behind one small interface, so that a test can own the disk.
//
// FileSystem and File block. Bulk data goes through Ring (ring.h), which takes many writes and
// reads at once on files opened here. Implementations: posix.h (real), memory.h (in memory, can
// drop what was not synced), faulty.h (wrapper: fails or stops the world at a chosen call).
//
// Durability contract, the one of POSIX and no more: file content is safe after sync(); a name
// (created, renamed, removed) is safe after sync_directory() of its parent; a rename between two
// directories needs both. EINTR is retried here; short writes and reads are continued here, unseen
// by callers. After a failed sync() nothing written since the last good one may be trusted, and a
// second sync() that succeeds proves nothing: give the file up.
//
// Threads: a FileSystem may be used by several at once; a File by one at a time (a Ring's requests
// on it aside). Paths are the operating system's; ".." and links are the caller's business.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace backstay::io {

// The alignment that O_DIRECT requires of offsets, lengths and addresses.
inline constexpr std::uint64_t direct_alignment = 4096;

// As the kernel counts: seconds since 1970-01-01 UTC, and how much more.
struct Moment {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

struct Attributes {
  std::uint32_t mode = 0;  // permission bits, as in chmod
  Moment accessed = {};
  Moment modified = {};
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

// What stands at a path.
struct Facts {
  bool file = false;    // a regular one
  bool folder = false;  // neither: a link, a pipe, a device ...
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  Attributes attributes = {};
  Moment changed = {};  // of the inode: its content, attributes or name
};

class File {
 public:
  virtual ~File() = default;  // closes; errors of close after sync mean nothing
  // Reads exactly to.size() bytes. Errors: corrupt if the file ends before, io.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status write_at(std::uint64_t offset, Bytes from) = 0;
  // Reserves blocks up to `bytes`; size() is then at least `bytes` and what was never written
  // reads as zeros. A file system that cannot reserve: ok, and nothing changes. Errors: no_space
  // (some blocks may have been taken: remove the file), io.
  virtual Status allocate(std::uint64_t bytes) = 0;
  virtual Status truncate(std::uint64_t bytes) = 0;
  // Mode, then times. They stay as they are set if nothing is written or read afterwards.
  virtual Status set_attributes(const Attributes& attributes) = 0;
  // Content, size, and what set_attributes() has set, on the device.
  virtual Status sync() = 0;
  virtual Result<std::uint64_t> size() = 0;
  // For Ring implementations of the same family; -1 where there is none.
  virtual int descriptor() const = 0;
  // True if opened with O_DIRECT: offsets, lengths and addresses must be multiples of 4096.
  virtual bool direct() const = 0;
};

enum class Open {
  read,           // must exist
  read_direct,    // O_DIRECT if the file system has it, else as read
  create,         // new or emptied, for writing (and reading back)
  create_direct,  // O_DIRECT if the file system has it, else as create
  reuse_direct,   // existing content and blocks are kept, for overwriting; created where missing
};

struct Entry {
  std::string name;
  bool directory = false;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Files made here have mode 0600. A link in the last place is refused for writing.
  virtual Result<std::unique_ptr<File>> open(const std::string& path, Open how) = 0;
  // All of the path; mode 0700, existing ones are fine. The new names are not safe yet.
  virtual Status make_directories(const std::string& path) = 0;
  // Replaces a file `to` at once: a crash leaves the old one or the new one.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;  // a file, or an empty directory
  // Of the path itself, also where it is a link. Errors: not_found, io.
  virtual Result<Facts> look(const std::string& path) = 0;
  // Sorted by name. Errors: not_found, io (also where `path` is not a directory).
  virtual Result<std::vector<Entry>> list(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
};

// Reads a whole small file; refuses more than `bytes_max` (Code::too_large).
Result<Buffer> read_file(FileSystem& fs, const std::string& path, std::uint64_t bytes_max);

// Publishes a small file: path.tmp written and synced, renamed to path, directory synced. After a
// crash before it returned, path has its old content, the new one, or is missing if it was.
// Failpoints: publish.1 (written and synced), publish.2 (renamed).
// `tmp`: another temporary name beside it, where several may publish the same at once.
Status publish_file(FileSystem& fs, const std::string& path, Bytes content,
                    const std::string& tmp = "");

// The status of a removal; not_found counts as success.
Status gone_is_fine(Status status);

// True: a file, a link (never what it names) or an empty directory is gone. False: it is a
// directory that is not empty. Ask this before a directory is removed with all that is in it:
// list() follows a link and would show files that are not ours.
Result<bool> remove_at_once(FileSystem& fs, const std::string& path);

// Removes a directory with everything in it, and syncs its parent. Missing: ok. Of a link only the
// link is removed.
Status remove_tree(FileSystem& fs, const std::string& path);

}  // namespace backstay::io
