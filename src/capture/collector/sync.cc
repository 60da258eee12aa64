// Files that are local and still open in their programs (docs/protocol/collector.md, "Syncs").
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/hold.h"
#include "base/log.h"
#include "capture/collector/collector.h"
#include "capture/files/pattern.h"

namespace backstay::files {

namespace {

bool has_ended(int process) {
  pollfd look{process, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

// A later change of the memory file has another time than `changed`, once this has returned: the
// clock of such times goes in steps.
void wait_for_next_step(const struct timespec& changed) {
  constexpr struct timespec moment = {0, 500'000};
  struct timespec now = {};
  while (::clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && now.tv_sec == changed.tv_sec &&
         now.tv_nsec <= changed.tv_nsec) {
    ::nanosleep(&moment, nullptr);
  }
}

// What a hold says of its file; "": it cannot be read.
std::string path_in(const std::string& hold) {
  const Fd file(::open(hold.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::array<char, path_max> text{};
  const ssize_t bytes = file.valid() ? ::pread(file.get(), text.data(), text.size(), 0) : 0;
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

}  // namespace

std::string Collector::hold_of(HeldVersion version) const {
  return hold_path(folder_, job_, version);
}

Status Collector::name_hold(const PendingFile& file, HeldVersion version) const {
  const std::string name = hold_of(version);
  const std::string link = "/proc/self/fd/" + std::to_string(file.hold.get());
  // The agent has it while it brings this version; what no process has goes.
  if (!Hold::take(name)) return Error(Code::busy, "the agent brings it");
  if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return errno_error("make " + name, errno);
  }
  const bool written = ::ftruncate(file.hold.get(), 0) == 0 &&
                       ::pwrite(file.hold.get(), file.path.data(), file.path.size(), 0) ==
                           static_cast<ssize_t>(file.path.size());
  if (!written) return errno_error("write " + name, errno);
  failpoint("collector.held");
  return {};
}

Result<VersionNumber> Collector::sync(const Question& question, Synced from,
                                      const std::function<bool()>& go_on) {
  wait_until_ready();
  BACKSTAY_ASSIGN(PendingFile made,
                  PendingFile::of(question, std::move(from.memory), std::move(from.target)));
  const auto file = std::make_shared<PendingFile>(std::move(made));
  file->hold = std::move(from.hold);
  file->process.reset(static_cast<int>(::syscall(SYS_pidfd_open, from.program, 0)));
  if (!file->process.valid()) return errno_error("watch the program", errno);
  File before;
  {
    const Lock lock(mutex_);
    BACKSTAY_ASSIGN(before, begin_work(*file));
    open_[file->key()] = file;
  }
  const Status local = make_local(*file, go_on);
  for (const HeldVersion& lost : std::exchange(file->former, {})) {
    if (lost.number != file->version) call_back(lost, file->path);
    (void)::unlink(hold_of(lost).c_str());
  }
  failpoint("collector.sync_local");
  if (!local.ok()) {
    if (file->version != 0) call_back(file->of_run(), file->path);
    const Lock lock(mutex_);
    open_.erase(file->key());
    release(*file, before);
    return local.error();
  }
  if (before) call_back(before->of_run(), before->path);
  failpoint("collector.synced");
  wait_for_next_step(file->synced.st_ctim);
  const Lock lock(mutex_);
  file->memory.reset();
  file->busy = false;
  changed_.notify_all();
  return file->version;
}

Status Collector::make_local(PendingFile& file, const std::function<bool()>& go_on) {
  BACKSTAY_TRY(file.may_be_replaced());
  if (::fstat(file.memory.get(), &file.synced) != 0) return errno_error("look at memory", errno);
  const auto put = [&](client::Writer& writer) { return put_in(file, writer, go_on); };
  BACKSTAY_TRY(writers_.with(put));
  failpoint("collector.sync_captured");
  return reach_local(file);
}

// It is closed as it was synced: the version may come home.
Status Collector::take_as_synced(PendingFile& file, const PendingFile& before) {
  {
    const Lock lock(mutex_);
    file.version = before.version;
    file.run = before.run;
    file.named = before.named;
    file.placed_ns = before.placed_ns;
    file.local = true;
  }
  (void)::unlink(hold_of(before.of_run()).c_str());
  failpoint("collector.unheld");
  return {};
}

Status Collector::let_go(VersionNumber version) {
  wait_until_ready();
  {
    const Lock lock(mutex_);
    const auto found = std::ranges::find_if(
        open_, [&](const auto& entry) { return entry.second->version == version; });
    if (found != open_.end()) {
      list_->unlist(found->first.first, found->first.second);
      open_.erase(found);
    }
  }
  call_back(version);
  return {};
}

void Collector::call_back(VersionNumber version) {
  const std::string hold = find_hold(folder_, job_, version);
  const std::string path = hold.empty() ? "" : path_in(hold);
  if (path.empty()) return;
  call_back(HeldVersion{version}, path);
  (void)::unlink(hold.c_str());
}

void Collector::call_back(HeldVersion version, const std::string& path) {
  const Status back =
      writers_.with([&](client::Writer& writer) { return writer.move(version, path, "", 0); });
  if (!back.ok()) {
    spdlog::info("a version was not called back job={} version={} file={} why=\"{}\"", job_,
                 version.number, path, back.error().to_string());
  }
  (void)::unlink(hold_of(version).c_str());
}

// It comes to the name that its placeholder has by now. False: it has none, another file stands
// there.
bool Collector::let_come(PendingFile& file) {
  const std::string path = file.name_now();
  if (path.empty()) {
    call_back(file.of_run(), file.path);
    return false;
  }
  if (path != file.path) {
    const std::uint64_t placed_ns = std::max(system_clock().wall_ns(), file.placed_ns);
    const Status moved = writers_.with([&](client::Writer& writer) {
      return writer.move(file.of_run(), file.path, path, placed_ns);
    });
    spdlog::info("a synced file had another name at the end job={} file={} to={} moved=\"{}\"",
                 job_, file.path, path, moved.ok() ? "" : moved.error().to_string());
    const Lock lock(mutex_);
    if (moved.ok()) file.path = path;
  }
  (void)::unlink(hold_of(file.of_run()).c_str());
  return true;
}

// Programs that have ended without a word: what they synced last comes to its place.
void Collector::take_ended(Lock& lock) {
  std::vector<File> ended;
  std::erase_if(open_, [&](const auto& entry) {
    if (entry.second->busy || !has_ended(entry.second->process.get())) return false;
    ended.push_back(entry.second);
    return true;
  });
  for (const File& file : ended) {
    file->busy = true;
    files_[file->key()] = file;
  }
  for (const File& file : ended) {
    lock.unlock();
    const bool comes = let_come(*file);
    failpoint("collector.ended_program");
    file->hold.reset();
    lock.lock();
    file->busy = false;
    comes ? order_.push_back(file) : release(*file);
    changed_.notify_all();
  }
}

}  // namespace backstay::files
