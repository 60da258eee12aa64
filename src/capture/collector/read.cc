// A pending file is read: a whole copy of it comes to its place at once
// (docs/protocol/collector.md, "Reads").
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/failpoint.h"
#include "base/folders.h"
#include "base/hold.h"
#include "base/log.h"
#include "capture/collector/collector.h"
#include "capture/files/ask.h"

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
  const int hold = make_hold(folder_.c_str());
  if (hold < 0) return errno_error("make a hold in " + folder_, -hold);
  file.hold = Fd(hold);
  return name_hold(file, file.of_run());
}

// Asks no agent: who reads waits for memory alone.
Status Collector::show(const File& file) {
  BACKSTAY_TRY(hold_here(*file));
  failpoint("collector.show_held");
  // The agent does not bring it meanwhile.
  auto place = file->stands() ? put_copy(*file, file->path, 0)
                              : Result<NewPlace>(not_here("it is at its place, or has left it"));
  if (!place.ok()) {
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

// A whole copy comes to the path, and is listed. `flags`: of renameat2.
Result<Collector::NewPlace> Collector::put_copy(const PendingFile& file, const std::string& path,
                                                unsigned flags) {
  std::string temporary;
  NewPlace place{path, {}, {}, {}};
  BACKSTAY_ASSIGN(place.target, file.copy_beside(path, temporary));
  if (const Status named = name_copy(place, temporary, flags); !named.ok()) {
    (void)::unlink(temporary.c_str());
    return named.error();
  }
  place.target = Fd(open_by_name(place.target.release(), path.c_str()));
  (void)::fstat(place.target.get(), &place.placed);
  return place;
}

Status Collector::name_copy(NewPlace& place, const std::string& temporary, unsigned flags) {
  if (::fstat(place.target.get(), &place.placed) != 0) return errno_error("look at a copy", errno);
  BACKSTAY_TRY(enlist(place.placed));
  failpoint("collector.copied");
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place.path.c_str(), flags) == 0) return {};
  const int error = errno;
  give_up(place);
  return errno_error("rename to " + place.path, error);
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
  const Status dropped = drop_here(file, path);
  // Other errors are of a mark that cannot be written: the copy is safe where it stands.
  if (!dropped.ok() && dropped.error().code() == Code::agent_lost) return dropped;
  if (!dropped.ok()) warn_of_return(path, dropped.error());
  (void)::unlink(hold_of(file.of_run()).c_str());
  file.hold.reset();
  return {};
}

}  // namespace backstay::files
