#include "store/home/home_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/checksum.h"
#include "base/failpoint.h"
#include "base/folders.h"
#include "base/log.h"

namespace backstay::store {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t known_max = 65'536;

io::Moment moment_of(std::uint64_t ns) {
  return {static_cast<std::int64_t>(ns / second_ns), static_cast<std::uint32_t>(ns % second_ns)};
}
io::Moment moment_of(const format::FileTime& time) { return {time.seconds, time.nanoseconds}; }

std::uint64_t sum_of(const std::string& text) {
  return checksum(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

std::string temporary_name(const std::string& job, const std::string& path) {
  return fmt::format("{}/.backstay-{:016x}{:016x}", parent_of(path), sum_of(job), sum_of(path));
}

io::Moment HomePaths::now() const { return moment_of(clock_.wall_ns()); }

void HomeFile::sync() {
  if (!comes()) return;
  status = written->sync();
  written.reset();
  if (status.ok()) failpoint("home.3");
}

HomeFile HomePaths::begin(VersionFiles& version, const VersionFiles::Entry& entry,
                          const std::function<bool()>& stop, const std::function<void()>& made) {
  HomeFile begun{.file = entry.file, .temporary = temporary_name(job_, entry.file.path)};
  look(begun);
  if (begun.comes()) begun.status = make(version, entry, begun, stop, made);
  return begun;
}

void HomePaths::look(HomeFile& file) {
  const auto how = compare(file.file);
  if (how.ok()) {
    file.how = *how;
  } else {
    file.status = how.error();
  }
}

// Another program may have written there while this file and others were written and synced.
void HomePaths::look_again(HomeFile& file) {
  if (file.comes()) look(file);
}

void HomePaths::place(HomeFile& file) {
  if (!file.comes()) return;
  file.status = files_.rename(file.temporary, file.file.path);
  failpoint("home.4");
  file.placed = file.status.ok();
  if (file.placed) {
    remember(file.file);
  } else {
    known_since_ = now();  // it may have happened all the same
  }
}

FileBrought HomePaths::finish(HomeFile& file) {
  FileBrought brought{.path = file.file.path};
  if (file.placed) return brought;
  brought.how = file.how;
  if (!file.status.ok()) {
    brought.how = Brought::failed;
    brought.code = file.status.error().code();
    brought.why = file.status.error().message();
  } else if (file.how == Brought::kept) {
    brought.why = "another program has put a newer file at its path";
  }
  file.written.reset();
  if (file.temporary_stays) return brought;
  const Status gone = io::gone_is_fine(files_.remove(file.temporary));
  if (!gone.ok() && gone.error().sys_errno() != ENOTDIR) {
    spdlog::info("a temporary file stays job={} file={} error=\"{}\"", job_, file.temporary,
                 gone.error().to_string());
  }
  return brought;
}

// What stands at the path: may it be replaced?
Result<Brought> HomePaths::compare(const format::CapturedFile& file) {
  const auto there = files_.look(file.path);
  if (!there.ok()) {
    if (there.error().code() != Code::not_found) return there.error();
    return Brought::home;
  }
  if (there->folder) return Error(Code::io, file.path + " is a folder now");
  const auto known = mine_.find(file.path);
  const bool mine = known != mine_.end() && known->second.device == there->device &&
                    known->second.inode == there->inode && known->second.changed == there->changed;
  if (mine) return known->second.placed_ns > file.placed_ns ? Brought::overtaken : Brought::home;
  const io::Moment ours = std::max(moment_of(file.placed_ns), moment_of(file.modified));
  const bool written_later = there->attributes.modified > ours;
  const bool came_later = there->changed > ours && there->changed > known_since_;
  return written_later || came_later ? Brought::kept : Brought::home;
}

Status HomePaths::make(VersionFiles& version, const VersionFiles::Entry& entry, HomeFile& begun,
                       const std::function<bool()>& stop, const std::function<void()>& made) {
  const format::CapturedFile& file = entry.file;
  BACKSTAY_ASSIGN(begun.written, files_.open(begun.temporary, io::Open::create));
  made();
  failpoint("home.1");
  BACKSTAY_TRY(version.read(entry, [&](std::uint64_t offset, Bytes bytes) -> Status {
    if (stop()) return Error(Code::again, "the agent ends");
    return begun.written->write_at(offset, bytes);
  }));
  BACKSTAY_TRY(begun.written->truncate(file.bytes));
  failpoint("home.2");
  return begun.written->set_attributes(
      {file.mode, moment_of(file.accessed), moment_of(file.modified)});
}

void HomePaths::remember(const format::CapturedFile& file) {
  const auto there = files_.look(file.path);
  if (!there.ok()) {
    known_since_ = now();
    return;
  }
  if (!mine_.contains(file.path)) order_.push_back(file.path);
  mine_[file.path] = {there->device, there->inode, there->changed, file.placed_ns};
  if (order_.size() <= known_max) return;
  const auto oldest = mine_.find(order_.front());
  known_since_ = std::max(known_since_, oldest->second.changed);
  mine_.erase(oldest);
  order_.pop_front();
}

}  // namespace backstay::store
