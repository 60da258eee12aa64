// Files that a program writes by itself and Backstay keeps (backstay_route_file).
//
// They live in <storage.dir>/<job>/files, which all ranks of a node share; each rank knows the
// names that it routed. Names are checked, so that none leaves the folder.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace backstay::client {

// Errors: invalid (a character or a name that is not allowed), too_large.
Status check_file_name(const std::string& name);

class RoutedFiles {
 public:
  explicit RoutedFiles(std::string folder) : folder_(std::move(folder)) {}

  // The file's path, which must fit into `path_bytes` with a final zero. Creates a missing folder.
  // Errors: invalid, too_large, config (it can never be made), permission, no_space, io; then the
  // file is not routed.
  Result<std::string> route(const std::string& name, std::size_t path_bytes);
  const std::set<std::string>& names() const { return names_; }
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::set<std::string> names_;
};

// A routed file at the moment of a checkpoint.
struct OpenFile {
  Fd fd;
  std::uint64_t bytes = 0;
  std::uint32_t mode = 0;
};
// Errors: invalid (missing, no regular file, unreadable; names the path).
Result<OpenFile> open_routed(const std::string& path);

// A file that restart brings back. It is written without a name, or beside its own name if the file
// system has no nameless files, and its room is reserved before the first byte. publish() gives it
// its name when everything has been delivered; otherwise it is removed.
class ReturningFile {
 public:
  // Errors: invalid (a folder has its place), permission, no_space (names path and bytes), io.
  static Result<ReturningFile> create(const std::string& path, std::uint64_t bytes,
                                      std::uint32_t mode);
  ReturningFile(ReturningFile&& other) noexcept = default;
  ReturningFile& operator=(ReturningFile&& other) = delete;
  ~ReturningFile();

  int descriptor() const { return fd_.get(); }
  Status publish();

 private:
  ReturningFile() = default;
  Status give_name() const;
  std::string path_;
  bool nameless_ = false;
  Fd fd_;  // invalid once published or moved from
};

// Whole transfers at an offset.
// Errors: invalid (the file ends before), io, no_space.
Status read_routed(int fd, std::uint64_t offset, std::span<std::byte> to);
Status write_routed(int fd, std::uint64_t offset, Bytes from);

}  // namespace backstay::client
