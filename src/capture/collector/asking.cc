// Who asks for files that are on their way (docs/protocol/collector.md, "Questions and answers").
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/hold.h"
#include "capture/collector/collector.h"

namespace backstay::files {

namespace {

constexpr const char* files_of_others =
    "captured files of programs before this one are still on the way to their places";

std::string in_words(std::uint64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", (bytes + 1023) >> 10)
                           : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

void Collector::wait_until_ready(const Tell& tell) {
  const Reminder reminder(tell, [] { return files_of_others; });
  wait_until_ready();
}

Status Collector::settle(PendingFile::Key key, bool reads) {
  wait_until_ready();
  Lock lock(mutex_);
  take_ended(lock);
  const auto found = files_.find(key);
  if (found == files_.end()) return {};
  const File file = found->second;
  if (reads && is_shown(file, lock)) return {};
  const unsigned before = file->tries;
  changed_.wait(lock, [&] { return file->gone || (!file->busy && !file->moving); });
  // What failed while we waited is tried once more: that try may have begun before our question.
  if (!file->gone) bring_and_note(file, lock);
  if (file->gone) return {};
  return Error(Code::io, fmt::format("{} (tried {} times)", file->why, file->tries - before));
}

std::list<Collector::Awaited> Collector::pending_now(bool paused_too) {
  const std::uint64_t now_ns = system_clock().monotonic_ns();
  std::list<Awaited> awaited;
  for (const auto& [key, file] : files_) {
    if (!paused_too && !file->busy && file->next_ns > now_ns) continue;
    awaited.push_back({file, file->tries + (file->busy ? 1 : 0)});
    file->next_ns = 0;
  }
  changed_.notify_all();
  return awaited;
}

// Precondition: locked.
bool Collector::Awaited::is_over() const {
  return file->gone || (!file->busy && file->tries > tries);
}

// "": none of them is on its way any more.
std::string Collector::words_for(const std::list<Awaited>& awaited) {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  for (const Awaited& one : awaited) {
    if (one.is_over()) continue;
    ++files;
    bytes += one.file->bytes;
  }
  if (files == 0) return "";
  return fmt::format("{} captured file{}, {}, still on the way to {}", files, files == 1 ? "" : "s",
                     in_words(bytes), files == 1 ? "its place" : "their places");
}

void Collector::wait_for(const std::list<Awaited>& awaited, const Tell& tell) {
  const Reminder reminder(tell, [&] {
    const Lock lock(mutex_);
    return words_for(awaited);
  });
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return std::ranges::all_of(awaited, &Awaited::is_over); });
}

Status Collector::settle_of_agent() {
  bool asked = false;
  const Status settled = writers_.with([&asked](client::Writer& writer) {
    asked = true;
    return writer.settle("", -1);
  });
  if (settled.ok()) return {};
  const std::string& why = settled.error().message();
  // If nobody could be asked, no file is known to be wrong, and `backstay ls` may show none.
  return Error(settled.error().code(),
               asked ? fmt::format("a captured file could not be brought to its place: {}; "
                                   "`backstay ls --files {}` shows which",
                                   why, job_)
                     : fmt::format("whether an earlier program's captured files are at their "
                                   "places is not known, as job {} cannot be opened: {}",
                                   job_, why));
}

// Of a collector before this one, whose program may have ended since. The agent has holds too, of
// the files that it is bringing.
Status Collector::settle_held(const std::list<Awaited>& awaited, const Tell& tell) {
  if (!has_holds(folder_, job_)) return {};
  const Reminder reminder(tell, [&] {
    const Lock lock(mutex_);
    const std::string words = words_for(awaited);
    return words.empty() ? files_of_others : words;
  });
  return settle_of_agent();
}

Status Collector::settle_all(const Tell& tell, bool paused_too) {
  wait_until_ready(tell);
  std::list<Awaited> awaited;
  Status all;
  {
    Lock lock(mutex_);
    take_ended(lock);
    awaited = pending_now(paused_too);
    all = std::exchange(leftovers_, Status());
  }
  if (all.ok()) all = settle_held(awaited, tell);
  if (!all.ok()) tell(all.error().message());
  wait_for(awaited, tell);
  const Lock lock(mutex_);
  for (const auto& [file, tries] : awaited) {
    if (file->gone) continue;
    tell(words_for(*file));
    all = Error(Code::io, file->why);
  }
  if (!paused_too) return all;
  forget_removed();
  for (const auto& [path, words] : left_) {
    tell(words);
    all = Error(Code::io, words);
  }
  return all;
}

// The other program's file does not stay any more.
void Collector::forget_removed() {
  std::erase_if(left_, [](const auto& one) { return ::access(one.first.c_str(), F_OK) != 0; });
}

// Of one that cannot be brought.
std::string Collector::words_for(const PendingFile& file) const {
  const std::string failed = fmt::format(
      "{} could not be brought to its place: {}. Its bytes are in ", file.path, file.why);
  if (!file.local) {
    return failed + fmt::format(
                        "memory alone, in process {} (backstay-collector), as {} has not taken "
                        "them: make room or mend the folder while it lives, and it is tried again",
                        ::getpid(), store_);
  }
  return failed + fmt::format(
                      "version {} of job {}: make room or mend the folder, and it is tried again; "
                      "or fetch it with `backstay export {} {} -o DIR`",
                      file.version, job_, job_, file.version);
}

void Collector::tell_left(const Tell& tell) {
  const Lock lock(mutex_);
  forget_removed();
  for (const auto& [path, words] : left_) tell(words);
}

}  // namespace backstay::files
