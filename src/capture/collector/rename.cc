// A pending file gets another name (docs/protocol/collector.md, "Renames").
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "base/failpoint.h"
#include "base/folders.h"
#include "base/log.h"
#include "capture/collector/collector.h"
#include "capture/files/exclusive.h"
#include "capture/files/sink.h"
#include "format/files.h"

namespace backstay::files {

namespace {

// The path of the new name in the folder of the file. Errors: unsupported.
Result<std::string> path_beside(const PendingFile& file, const Question& question) {
  const std::string folder = parent_of(file.path);
  struct stat there = {};
  if (::stat(folder.c_str(), &there) != 0 || there.st_dev != question.folder_device ||
      there.st_ino != question.folder_inode) {
    return not_here("the new name is in another folder");
  }
  const std::string name(question.name, ::strnlen(question.name, name_max));
  std::string path = (folder == "/" ? folder : folder + "/") + name;
  if (name.empty() || name.find('/') != std::string::npos || !format::check_file_path(path).ok()) {
    return not_here("it is no name of a file");
  }
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return not_here("the folder takes no file");
  }
  return path;
}

}  // namespace

Status Collector::rename(PendingFile::Key key, const Question& question) {
  wait_until_ready();
  Lock lock(mutex_);
  const auto found = files_.find(key);
  if (found == files_.end()) return not_here("it is at its place");
  const File file = found->second;
  changed_.wait(lock, [&] { return file->gone || file->may_move(); });
  if (file->gone || file->key() != key) return not_here("it is at its place");
  file->moving = true;
  lock.unlock();
  const Status renamed = rename_taken(file, question);
  lock.lock();
  file->moving = false;
  changed_.notify_all();
  return renamed;
}

Status Collector::rename_taken(const File& file, const Question& question) {
  if (!file->memory.valid()) return not_here("its bytes are with the agent only");
  if (is_whole(*file)) return not_here("its place has it by now");
  BACKSTAY_ASSIGN(const std::string path, path_beside(*file, question));
  BACKSTAY_ASSIGN(NewPlace place, new_place(*file, path));
  failpoint("collector.place_listed");
  const std::uint64_t placed_ns =
      std::max(system_clock().wall_ns(), nanoseconds(place.placed.st_ctim));
  if (file->is_older_than(place.placed, placed_ns)) {
    give_up(place);
    return not_here("the old file's time is ahead of the clock");
  }
  bool called_back = true;
  const Status moved = writers_.with([&](client::Writer& writer) -> Status {
    if (writer.run() != file->run) return not_here("another agent has the job");
    BACKSTAY_TRY(writer.move(file->of_run(), file->path, path, placed_ns));
    // It is not to come back once this one has left the name again.
    if (place.before) called_back = writer.move(place.before->of_run(), path, "", 0).ok();
    return {};
  });
  if (!moved.ok()) {
    give_up(place);
    return moved;
  }
  failpoint("collector.moved");
  const bool stands = stands_at(path, place.placed);
  file->remove_placeholder();
  failpoint("collector.placeholder_gone");
  spdlog::info("a file is renamed on its way file={} to={}", file->path, path);
  take_place(file, std::move(place), placed_ns);
  // What was pending there has come home a moment before, so what stands there is not listed; or it
  // is on its way, and must not come after this one has left the name again.
  if (!stands || !called_back) {
    (void)writers_.with([&](client::Writer& writer) { return writer.settle(path, -1); });
  }
  return {};
}

// What stands at the path becomes the file's placeholder, and is listed.
Result<Collector::NewPlace> Collector::new_place(const PendingFile& file, const std::string& path) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0) {
    if (errno != ENOENT) return errno_error("look at " + path, errno);
    return put_copy(file, path, RENAME_NOREPLACE);  // whole from the first moment on
  }
  if (!S_ISREG(there.st_mode) || there.st_nlink != 1 || there.st_uid != ::geteuid() ||
      there.st_dev != file.placed.st_dev || there.st_ino == file.placed.st_ino) {
    return not_here("at the new name stands what cannot be replaced later");
  }
  bool pending = false;
  {
    const Lock lock(mutex_);
    pending = files_.contains({there.st_dev, there.st_ino});
  }
  return pending ? place_of_pending(path, {there.st_dev, there.st_ino}) : place_of_old_file(path);
}

// The list first, then the look: a process that opens it looks at the list after it has opened.
Result<Collector::NewPlace> Collector::place_of_old_file(const std::string& path) {
  NewPlace place{
      path, Fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)), {}, {}};
  if (!place.target.valid() || ::fstat(place.target.get(), &place.placed) != 0 ||
      !S_ISREG(place.placed.st_mode)) {
    return not_here("at the new name stands what cannot be replaced later");
  }
  BACKSTAY_TRY(enlist(place.placed));
  if (!open_elsewhere(place.target.get())) return place;
  give_up(place);
  return not_here("another process has the file at the new name open");
}

// A program that replaces its file again and again does not wait for each of them.
Result<Collector::NewPlace> Collector::place_of_pending(const std::string& path,
                                                        PendingFile::Key key) {
  const Lock lock(mutex_);
  const auto found = files_.find(key);
  if (found == files_.end() || !found->second->may_move() || found->second->whole ||
      found->second->path != path) {
    return not_here("the file at the new name is on its way");
  }
  const File before = found->second;
  NewPlace place{path, Fd(::fcntl(before->target.get(), F_DUPFD_CLOEXEC, 3)), {}, before};
  if (!place.target.valid() || ::fstat(place.target.get(), &place.placed) != 0) {
    return errno_error("look at " + path, errno);
  }
  before->moving = true;
  return place;
}

Status Collector::enlist(const struct stat& placed) {
  const Lock lock(mutex_);
  if (list_->list(placed.st_dev, placed.st_ino)) return {};
  return not_here("too many files are on their way");
}

void Collector::give_up(const NewPlace& place) {
  const Lock lock(mutex_);
  if (place.before) {
    place.before->moving = false;
  } else {
    list_->unlist(place.placed.st_dev, place.placed.st_ino);
  }
  changed_.notify_all();
}

void Collector::take_place(const File& file, NewPlace place, std::uint64_t placed_ns) {
  const Lock lock(mutex_);
  if (const File before = place.before) {
    auto& all = file->elsewhere;
    std::ranges::move(before->elsewhere, std::back_inserter(all));
    all.push_back(before->elsewhere_of());
    // The agent has written the marks of what was replaced so long ago.
    if (all.size() > pending_max) all.erase(all.begin());
    before->gone = true;
    before->moving = false;
    order_.remove(before);
  }
  list_->unlist(file->placed.st_dev, file->placed.st_ino);
  files_.erase(file->key());
  file->target = std::move(place.target);
  file->placed = file->opened = place.placed;
  file->path = std::move(place.path);
  file->placed_ns = placed_ns;
  file->next_ns = 0;
  files_[file->key()] = file;
}

}  // namespace backstay::files
