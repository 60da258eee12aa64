// Renames. A file in memory comes to its place first. One that is pending (pool.h) gets its new
// name from the collector, where that can be; else both names are settled and the kernel renames.
#include <cstring>

#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/pattern.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

// A file gets its bytes before it gets another name, so that no process finds the new name empty.
// Returns an error number: then it must not get that name.
int bring_path_home(int folder, const char* path) {
  if (!is_anything_captured()) return 0;
  Lock lock;
  MemoryFile* file = file_at_path(folder, path, AT_SYMLINK_NOFOLLOW);
  return file == nullptr ? 0 : bring_home(*file, false);
}

int before_rename(int from_folder, const char* from, int to_folder, const char* to) {
  if (const int error = bring_path_home(from_folder, from)) return error;
  if (const int error = settle_path(from_folder, from, AT_SYMLINK_NOFOLLOW)) return error;
  return settle_path(to_folder, to, AT_SYMLINK_NOFOLLOW);
}

// The folder that a path names something in, and the name; false where that is no plain name.
bool look_at_folder(int at, const char* path, struct stat& folder, const char*& name) {
  const char* slash = std::strrchr(path, '/');
  name = slash == nullptr ? path : slash + 1;
  if (*name == '\0' || std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return false;
  if (slash == nullptr) return raw::fstatat(at, ".", &folder, 0) == 0;
  char above[path_max];
  const auto bytes = slash == path ? 1 : static_cast<std::size_t>(slash - path);
  if (bytes >= sizeof(above)) return false;
  std::memcpy(above, path, bytes);
  above[bytes] = '\0';
  return raw::fstatat(at, above, &folder, 0) == 0;
}

// A path, and what stood there before the collector was asked.
struct End {
  int folder;
  const char* path;
  struct stat found = {};
  bool there = false;

  bool look() {
    there = raw::fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW) == 0;
    return there;
  }
};

// The collector went away while it renamed, and all is settled since. Where it had told the agent,
// the file has come to its new name, and an empty one may stand at the old name.
Renamed find_out(const End& from, const End& to) {
  End now{from.folder, from.path};
  if (!now.look()) return Renamed::yes;
  if (!raw::is_same(now.found, from.found)) return Renamed::no;
  End there{to.folder, to.path};
  if (!there.look() || (to.there && raw::is_same(there.found, to.found))) return Renamed::failed;
  raw::call(SYS_unlinkat, from.folder, from.path, 0);
  return Renamed::yes;
}

Renamed rename_pending(int from_folder, const char* from, int to_folder, const char* to) {
  if (!is_anything_pending() || from == nullptr || to == nullptr) return Renamed::no;
  End old_end{from_folder, from};
  End new_end{to_folder, to};
  if (!old_end.look() || !is_pending(old_end.found)) return Renamed::no;
  if (new_end.look() && raw::is_same(old_end.found, new_end.found)) return Renamed::no;
  struct stat old_folder = {};
  struct stat folder = {};
  const char* name = nullptr;
  if (!look_at_folder(from_folder, from, old_folder, name) ||
      !look_at_folder(to_folder, to, folder, name) || !raw::is_same(old_folder, folder)) {
    return Renamed::no;
  }
  const Renamed renamed = rename_in_pool(old_end.found, folder, name);
  if (renamed != Renamed::failed) return renamed;
  return settle_found(old_end.found) == 0 ? find_out(old_end, new_end) : Renamed::failed;
}

// Whether the kernel has nothing to do any more; `result` is what the program gets then.
bool renamed_already(int from_folder, const char* from, int to_folder, const char* to,
                     int& result) {
  const Renamed renamed = rename_pending(from_folder, from, to_folder, to);
  if (renamed == Renamed::no) return false;
  result = answer(renamed == Renamed::yes ? 0 : EIO);
  return true;
}

}  // namespace

EXPORT(int, rename, (const char* from, const char* to)) {
  int result = 0;
  if (renamed_already(AT_FDCWD, from, AT_FDCWD, to, result)) return result;
  if (const int error = before_rename(AT_FDCWD, from, AT_FDCWD, to)) return answer(error);
  return NEXT(rename)(from, to);
}

EXPORT(int, renameat, (int from_folder, const char* from, int to_folder, const char* to)) {
  int result = 0;
  if (renamed_already(from_folder, from, to_folder, to, result)) return result;
  if (const int error = before_rename(from_folder, from, to_folder, to)) return answer(error);
  return NEXT(renameat)(from_folder, from, to_folder, to);
}

EXPORT(int, renameat2,
       (int from_folder, const char* from, int to_folder, const char* to, unsigned flags)) {
  int result = 0;
  if (flags == 0 && renamed_already(from_folder, from, to_folder, to, result)) return result;
  if (const int error = before_rename(from_folder, from, to_folder, to)) return answer(error);
  if ((flags & 2U) != 0) {  // RENAME_EXCHANGE
    if (const int error = bring_path_home(to_folder, to)) return answer(error);
  }
  return NEXT(renameat2)(from_folder, from, to_folder, to, flags);
}

}  // namespace backstay::files
