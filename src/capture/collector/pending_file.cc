#include "capture/collector/pending_file.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/folders.h"
#include "capture/files/raw.h"
#include "capture/files/sink.h"

namespace backstay::files {

namespace {

// The functions of sink.h have scratch memory of their own.
std::mutex sink_mutex;

// What the agent makes at the path belongs to whom new files there belong to.
bool owner_stays(const struct stat& placed, const std::string& path) {
  struct stat folder = {};
  if (::stat(parent_of(path).c_str(), &folder) != 0) return false;
  const gid_t group = (folder.st_mode & S_ISGID) != 0 ? folder.st_gid : ::getegid();
  return placed.st_uid == ::geteuid() && placed.st_gid == group;
}

}  // namespace

Result<PendingFile> PendingFile::of(const Question& question, Fd memory, Fd target) {
  PendingFile file;
  struct stat bytes = {};
  if (::fstat(target.get(), &file.placed) != 0 || ::fstat(memory.get(), &bytes) != 0) {
    return errno_error("look at a captured file", errno);
  }
  if (!S_ISREG(file.placed.st_mode) || !S_ISREG(bytes.st_mode)) return not_here("no file");
  file.opened.st_size = question.opened_bytes;
  file.opened.st_mtim = {question.opened_s, question.opened_ns};
  file.mode = file.placed.st_mode & 07777U;
  file.bytes = static_cast<std::uint64_t>(bytes.st_size);
  file.modified = bytes.st_mtim;
  file.memory = std::move(memory);
  file.target = std::move(target);
  return file;
}

Status PendingFile::may_be_replaced() {
  char name[path_max];
  {
    const std::lock_guard guard(sink_mutex);
    const Finished finished{memory.get(), target.get(), opened, false};
    if (!can_be_replaced(finished, name)) return not_here("a rename would be wrong");
  }
  path = name;
  if (::flistxattr(target.get(), nullptr, 0) > 0) return not_here("it has extended attributes");
  if (!owner_stays(placed, path)) return not_here("it has another owner than new files");
  // The clock of the file's system may be ahead of ours.
  placed_ns = std::max(system_clock().wall_ns(), nanoseconds(placed.st_ctim));
  if (is_older_than(placed, placed_ns))
    return not_here("the old file's time is ahead of the clock");
  return {};
}

bool PendingFile::is_older_than(const struct stat& there, std::uint64_t placed_at_ns) const {
  const std::uint64_t ours = std::max(placed_at_ns, nanoseconds(modified));
  return there.st_mtim.tv_sec >= 0 && nanoseconds(there.st_mtim) > ours;
}

std::uint32_t PendingFile::mode_to_have() const {
  constexpr std::uint32_t bits = 07777;
  struct stat now = {};
  const bool changed =
      ::fstat(target.get(), &now) == 0 && (now.st_mode & bits) != (placed.st_mode & bits);
  return changed ? now.st_mode & bits : mode;
}

Status PendingFile::place() {
  if (!memory.valid()) return Error(Code::internal, "its bytes are with the agent only");
  const std::lock_guard guard(sink_mutex);
  const std::uint32_t wanted = mode_to_have();
  Finished finished{memory.get(), target.get(), opened, true, true};
  const Kept kept = keep_direct(finished);
  opened = finished.opened;
  if (kept.error == 0) (void)::fchmod(kept.placed >= 0 ? kept.placed : target.get(), wanted);
  if (kept.placed >= 0) ::close(kept.placed);
  return kept.error == 0 ? Status() : Status(errno_error("write " + path, kept.error));
}

Result<Fd> PendingFile::copy_beside(const std::string& to, std::string& name) const {
  const std::lock_guard guard(sink_mutex);
  char made[path_max];
  const int fd = files::copy_beside({memory.get(), target.get(), opened, false}, to.c_str(), made);
  if (fd < 0) return errno_error("write beside " + to, -fd);
  name = made;
  (void)::fchmod(fd, mode_to_have());
  return Fd(fd);
}

bool PendingFile::is_removed() const {
  struct stat now = {};
  struct stat there = {};
  return ::fstat(target.get(), &now) == 0 && now.st_nlink == 0 &&
         ::lstat(path.c_str(), &there) != 0 && errno == ENOENT;
}

bool PendingFile::Elsewhere::stands() const {
  struct stat there = {};
  return ::lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode) &&
         static_cast<std::uint64_t>(there.st_size) == bytes &&
         nanoseconds(there.st_mtim) == nanoseconds(modified);
}

bool stands_at(const std::string& path, const struct stat& file) {
  struct stat there = {};
  return ::lstat(path.c_str(), &there) == 0 && raw::is_same(there, file);
}

bool PendingFile::is_untouched() const {
  struct stat now = {};
  return stands() && ::fstat(target.get(), &now) == 0 && now.st_size == opened.st_size &&
         nanoseconds(now.st_mtim) == nanoseconds(opened.st_mtim);
}

std::uint64_t PendingFile::changed_ns() const {
  struct stat now = {};
  return ::fstat(target.get(), &now) == 0 ? nanoseconds(now.st_ctim) : 0;
}

// A network file system gives a replaced file that is open another name: then its bytes tell.
bool PendingFile::has_left() const {
  struct stat now = {};
  if (::fstat(target.get(), &now) == 0 && now.st_nlink == 0) return true;
  return !stands() && Elsewhere{{}, path, bytes, modified}.stands();
}

bool PendingFile::is_replaced() const {
  struct stat there = {};
  return !stands() && !Elsewhere{{}, path, bytes, modified}.stands() &&
         ::lstat(path.c_str(), &there) == 0;
}

bool PendingFile::is_replaced_by_newer() const {
  struct stat there = {};
  return is_replaced() && ::lstat(path.c_str(), &there) == 0 && is_older_than(there, placed_ns);
}

std::string PendingFile::name_now() const {
  if (stands()) return path;
  char now[path_max];
  return raw::path_of(target.get(), now) && stands_at(now, placed) ? now : "";
}

bool PendingFile::is_as_synced(const PendingFile& before) const {
  struct stat now = {};
  const auto same = [](const struct timespec& one, const struct timespec& other) {
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
  };
  return path == before.path && same(placed.st_ctim, before.placed.st_ctim) &&
         ::fstat(memory.get(), &now) == 0 && now.st_size == before.synced.st_size &&
         same(now.st_mtim, before.synced.st_mtim) && same(now.st_ctim, before.synced.st_ctim);
}

void PendingFile::remove_placeholder() const {
  if (stands()) ::unlink(path.c_str());
}

}  // namespace backstay::files
