#include "io/file.h"

#include <cerrno>

#include "base/failpoint.h"
#include "base/folders.h"

namespace backstay::io {

Result<Buffer> read_file(FileSystem& fs, const std::string& path, std::uint64_t bytes_max) {
  BACKSTAY_ASSIGN(auto file, fs.open(path, Open::read));
  BACKSTAY_ASSIGN(const std::uint64_t bytes, file->size());
  if (bytes > bytes_max) {
    return Error(Code::too_large, path + " has " + std::to_string(bytes) + " bytes, more than " +
                                      std::to_string(bytes_max));
  }
  Buffer content(bytes);
  if (auto read = file->read_at(0, content); !read.ok()) return read.error().context(path);
  return content;
}

static Status write_and_sync(FileSystem& fs, const std::string& path, Bytes content) {
  BACKSTAY_ASSIGN(auto file, fs.open(path, Open::create));
  BACKSTAY_TRY(file->write_at(0, content));
  return file->sync();
}

static Status write_and_rename(FileSystem& fs, const std::string& tmp, const std::string& path,
                               Bytes content) {
  BACKSTAY_TRY(write_and_sync(fs, tmp, content));
  failpoint("publish.1");
  return fs.rename(tmp, path);
}

Status publish_file(FileSystem& fs, const std::string& path, Bytes content,
                    const std::string& temporary) {
  const std::string tmp = temporary.empty() ? path + ".tmp" : temporary;
  if (auto renamed = write_and_rename(fs, tmp, path, content); !renamed.ok()) {
    (void)fs.remove(tmp);  // the first error is the one to tell
    return renamed.error().context("publish " + path);
  }
  failpoint("publish.2");
  return fs.sync_directory(parent_of(path));
}

Status gone_is_fine(Status status) {
  return !status.ok() && status.error().code() == Code::not_found ? Status() : status;
}

Result<bool> remove_at_once(FileSystem& fs, const std::string& path) {
  const Status removed = gone_is_fine(fs.remove(path));
  if (removed.ok()) return true;
  const int why = removed.error().sys_errno();
  if (why == ENOTEMPTY || why == EEXIST) return false;
  return removed.error();
}

static Status remove_below(FileSystem& fs, const std::string& path) {
  BACKSTAY_ASSIGN(const bool gone, remove_at_once(fs, path));
  if (gone) return {};
  auto entries = fs.list(path);
  if (!entries.ok()) return gone_is_fine(entries.error());
  for (const Entry& entry : *entries) {
    const std::string child = path + "/" + entry.name;
    BACKSTAY_TRY(entry.directory ? remove_below(fs, child) : gone_is_fine(fs.remove(child)));
  }
  return gone_is_fine(fs.remove(path));
}

Status remove_tree(FileSystem& fs, const std::string& path) {
  BACKSTAY_TRY(remove_below(fs, path));
  return gone_is_fine(fs.sync_directory(parent_of(path)));
}

}  // namespace backstay::io
