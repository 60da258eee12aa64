// A pending file is read: a whole copy of it comes to its place at once
// (docs/protocol/collector.md, "Reads").
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/failpoint.h"
#include "base/folders.h"
#include "base/hold.h"
#include "base/log.h"
#include "capture/collector/collector.h"
#include "capture/files/sink.h"

namespace backstay::files {

bool Collector::is_whole(const PendingFile& file) {
  const Lock lock(mutex_);
  return file.whole;
}

bool Collector::is_shown(const File& file, Lock& lock) {
  changed_.wait(lock, [&] { return file->gone || file->whole || file->may_move(); });
  if (file->gone || file->whole) return true;
  if (!file->memory.valid()) return false;
  file->moving = true;
  ++file->shows;
  lock.unlock();
  const Status shown = show(file);
  if (!shown.ok()) {
    spdlog::info("a file is waited for by who reads it file={} why=\"{}\"", file->path,
                 shown.error().to_string());
  }
  lock.lock();
  file->moving = false;
  changed_.notify_all();
  return shown.ok();
}

// The agent leaves it alone while this process lives.
Status Collector::hold_here(PendingFile& file) const {
  const std::string name = hold_of(file.of_run());
  Fd hold(::open(folder_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (!hold.valid() || ::flock(hold.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno_error("make a hold in " + folder_, errno);
  }
  file.hold = std::move(hold);
  return name_hold(file, file.of_run());
}

// Asks no agent: who reads waits for memory alone.
Status Collector::show(const File& file) {
  BACKSTAY_TRY(hold_here(*file));
  failpoint("collector.show_held");
  std::string temporary;
  auto place = copy_to_place(*file, temporary);
  if (!place.ok()) {
    if (!temporary.empty()) (void)::unlink(temporary.c_str());
    (void)::unlink(hold_of(file->of_run()).c_str());
    file->hold.reset();
    return place.error();
  }
  failpoint("collector.shown");
  take_place(file, std::move(*place), file->placed_ns);
  const Lock lock(mutex_);
  list_->set_whole(file->placed.st_dev, file->placed.st_ino);
  file->whole = true;
  return {};
}

// The agent does not bring it meanwhile.
Result<Collector::NewPlace> Collector::copy_to_place(const PendingFile& file,
                                                     std::string& temporary) {
  if (!file.stands()) return not_here("it is at its place, or has left it");
  NewPlace place{file.path, {}, {}, {}};
  BACKSTAY_ASSIGN(place.target, file.copy_beside(file.path, temporary));
  if (::fstat(place.target.get(), &place.placed) != 0) return errno_error("look at a copy", errno);
  {
    const Lock lock(mutex_);
    if (!list_->list(place.placed.st_dev, place.placed.st_ino)) {
      return not_here("too many files are on their way");
    }
  }
  failpoint("collector.copied");
  if (::rename(temporary.c_str(), file.path.c_str()) != 0) {
    const int error = errno;
    const Lock lock(mutex_);
    list_->unlist(place.placed.st_dev, place.placed.st_ino);
    return errno_error("rename to " + file.path, error);
  }
  place.target = Fd(open_by_name(place.target.release(), file.path.c_str()));
  (void)::fstat(place.target.get(), &place.placed);
  return place;
}

// The copy stays where it stands.
Status Collector::finish_whole(PendingFile& file) {
  const std::string path = file.path;
  if (file.stands()) {
    if (::fsync(file.target.get()) != 0) return errno_error("sync " + path, errno);
    const Fd folder(::open(parent_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid() || ::fsync(folder.get()) != 0) {
      return errno_error("sync the folder of " + path, errno);
    }
  }
  failpoint("collector.copy_synced");
  const Status dropped = writers_.with(
      [&](client::Writer& writer) -> Status { return drop_here(file, path, writer); });
  // Other errors are of a mark that cannot be written: the copy is safe where it stands.
  if (!dropped.ok() && dropped.error().code() == Code::agent_lost) return dropped;
  if (!dropped.ok()) warn_of_return(path, dropped.error());
  (void)::unlink(hold_of(file.of_run()).c_str());
  file.hold.reset();
  return {};
}

}  // namespace backstay::files
