#include "capture/collector/collector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/failpoint.h"
#include "base/folders.h"
#include "base/log.h"
#include "capture/collector/hand_in.h"

namespace backstay::files {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr double local_patience_s = 5;
constexpr double note_every_s = 10;

}  // namespace

Collector::Collector(client::WriterSettings settings, std::unique_ptr<PendingList> list,
                     std::uint64_t memory_bytes_max)
    : writers_(settings),
      job_(settings.join.job),
      folder_(parent_of(settings.agent.socket_path)),
      store_(settings.join.dir + "/" + job_),
      memory_bytes_max_(memory_bytes_max),
      list_(std::move(list)),
      home_([this] { run(); }) {}

Collector::~Collector() {
  {
    const Lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  home_.join();
}

// --- taking --------------------------------------------------------------------------------------

std::uint64_t Collector::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [key, file] : files_) bytes += file->memory.valid() ? file->bytes : 0;
  return bytes;
}

void Collector::wait_until_ready() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
}

Status Collector::keep(const Question& question, Fd memory, Fd target,
                       const std::function<bool()>& go_on) {
  wait_until_ready();
  BACKSTAY_ASSIGN(PendingFile made,
                  PendingFile::of(question, std::move(memory), std::move(target)));
  const auto file = std::make_shared<PendingFile>(std::move(made));
  File before;  // it was synced
  {
    const Lock lock(mutex_);
    BACKSTAY_ASSIGN(before, begin_work(*file));
    open_.erase(file->key());
    files_[file->key()] = file;
  }
  failpoint("collector.listed");
  const Until until = question.version != 0 ? Until::local : question.until;
  Status taken = file->may_be_replaced();
  if (taken.ok() && before && file->is_as_synced(*before)) {
    taken = take_as_synced(*file, *before);
  } else if (taken.ok()) {
    taken = hand_over(*file, until, go_on);
    if (taken.ok() && question.version != 0) call_back(question.version);
  }
  // The agent may have the file in memory. It would say at its end that the file is lost.
  if (!taken.ok() && file->version != 0) call_back(file->of_run(), file->path);
  if (taken.ok()) written_.add_captured(file->bytes);
  const Lock lock(mutex_);
  file->busy = false;
  if (taken.ok()) {
    order_.push_back(file);
  } else {
    spdlog::info("a file goes to its place directly job={} file={} why=\"{}\"", job_, file->path,
                 taken.error().to_string());
    release(*file, before);
  }
  changed_.notify_all();
  return taken;
}

// The one of its last sync, if any. From now on it is listed.
Result<Collector::File> Collector::begin_work(const PendingFile& file) {
  if (files_.contains(file.key())) return Error(Code::busy, "the file is on its way already");
  const auto synced = open_.find(file.key());
  if (synced != open_.end()) {
    if (synced->second->busy) return Error(Code::busy, "the file is being synced");
    return synced->second;
  }
  if (!list_->list(file.placed.st_dev, file.placed.st_ino)) {
    return Error(Code::too_large, "too many files are on their way");
  }
  return File();
}

Status Collector::hand_over(PendingFile& file, Until until, const std::function<bool()>& go_on) {
  const auto put = [&](client::Writer& writer) { return put_in(file, writer, go_on); };
  BACKSTAY_TRY(writers_.with(put));
  bool full = false;
  {
    const Lock lock(mutex_);
    full = held_bytes() > memory_bytes_max_;
  }
  if (until != Until::local && !full) return {};
  BACKSTAY_TRY(reach_local(file));
  const Lock lock(mutex_);
  if (full) file.memory.reset();
  return {};
}

Status Collector::put_in(PendingFile& file, client::Writer& writer,
                         const std::function<bool()>& go_on) {
  const auto begun = [&](VersionNumber number) {
    return file.hold.valid() ? name_hold(file, {number, writer.run()}) : Status();
  };
  BACKSTAY_ASSIGN(const VersionNumber version, hand_in(writer, file, begun, go_on));
  const Lock lock(mutex_);
  if (file.version != 0) {
    if (file.hold.valid()) file.former.push_back(file.of_run());
    if (file.named != file.path) file.elsewhere.push_back(file.elsewhere_of());
  }
  file.version = version;
  file.run = writer.run();
  file.named = file.path;
  file.local = false;
  return {};
}

// A version that was lost with an agent is handed in again.
Status Collector::reach_local(PendingFile& file) {
  const Status reached = writers_.with([&](client::Writer& writer) -> Status {
    if (writer.run() != file.run) BACKSTAY_TRY(put_in(file, writer, [] { return true; }));
    return writer.wait(file.version, Level::local, -1);
  });
  const Lock lock(mutex_);
  file.local = reached.ok();
  return reached;
}

// --- bringing ------------------------------------------------------------------------------------

Status Collector::bring_by_agent(PendingFile& file) {
  return writers_.with([&](client::Writer& writer) -> Status {
    if (writer.run() != file.run && file.memory.valid()) BACKSTAY_TRY(put_in_again(file, writer));
    BACKSTAY_TRY(drop_elsewhere(file, writer));
    failpoint("collector.settles");
    return settle_at_its_path(file, writer);
  });
}

// An agent knows nothing of what another one had in memory only, and would call it settled. A file
// that another agent has brought is not handed in again: its program may have renamed it since.
Status Collector::put_in_again(PendingFile& file, client::Writer& writer) {
  {
    const Lock lock(mutex_);
    if (file.gone) return {};
  }
  if (!file.has_left() || !was_brought_or_call_back(file, writer)) {
    return put_in(file, writer, [] { return true; });
  }
  const Lock lock(mutex_);
  file.elsewhere.push_back(file.elsewhere_of());
  file.run = writer.run();
  return {};
}

// True: an agent before this one has brought it. Else this one does not bring it any more.
bool Collector::was_brought_or_call_back(const PendingFile& file, client::Writer& writer) const {
  if (!wait_for_tables(file.path, writer).ok()) return false;
  Status called_back = writer.move(file.of_run(), file.path, "", 0);
  const bool unknown = !called_back.ok() && called_back.error().code() == Code::not_found;
  if (unknown && file.named != file.path) {
    called_back = writer.move(file.of_run(), file.named, "", 0);
  }
  const Code code = called_back.ok() ? Code::ok : called_back.error().code();
  return code == Code::state || (code == Code::not_found && !is_lost(file));
}

// Of a version that the agent does not know. It was at home and is removed; or it was lost, and
// another program has removed or replaced the placeholder. What the agent will keep is handed in
// again. Where an older file stands now that would be replaced: its program wants it there.
bool Collector::is_lost(const PendingFile& file) const {
  if (file.is_replaced_by_newer()) return true;
  if (file.is_replaced()) {
    spdlog::warn(
        "another file is at the path of one whose version is gone; if it was not at its place "
        "before, it is lost job={} file={}",
        job_, file.path);
  }
  return false;
}

// The agent answers once it has read the tables of all versions. As no file lies below a file, it
// brings nothing for this question.
Status Collector::wait_for_tables(const std::string& path, client::Writer& writer) {
  return writer.settle(path + "/", -1);
}

// The program may rename it meanwhile, or let another file take its place.
Status Collector::settle_at_its_path(PendingFile& file, client::Writer& writer) {
  Lock lock(mutex_);
  for (;;) {
    const std::string path = file.path;
    const unsigned shows = file.shows;
    file.settling = true;
    changed_.notify_all();
    lock.unlock();
    std::string kept;
    const Status settled = writer.settle(path, -1, &kept);
    lock.lock();
    changed_.wait(lock, [&] { return !file.moving; });
    file.settling = false;
    file.why_kept = file.whole ? "" : std::move(kept);
    if (file.whole) {
      lock.unlock();
      return finish_whole(file);
    }
    if (file.gone || (file.path == path && file.shows == shows)) return settled;
  }
}

Status Collector::bring(PendingFile& file) {
  if (is_whole(file)) return finish_whole(file);
  const Status brought = bring_by_agent(file);
  if (file.gone || (brought.ok() && file.why_kept.empty())) return {};
  if (file.is_removed()) {
    drop_placed(file);
    return {};
  }
  if (brought.ok() && !(file.memory.valid() && file.is_untouched())) {
    leave(file);
    return {};
  }
  if (!file.memory.valid()) return brought;
  return bring_here(file, brought.ok() ? Error(Code::busy, file.why_kept) : brought.error());
}

// The agent cannot bring the file. Or it keeps the file, as it takes our placeholder for another
// program's newer one: somebody has changed the placeholder's mode, owner or names, or we have
// written it in part.
Status Collector::bring_here(PendingFile& file, const Error& why) {
  const Status placed = file.place();
  spdlog::warn("the agent cannot bring a file to its place job={} file={} why=\"{}\" placed={}",
               job_, file.path, why.to_string(), placed.ok() ? "yes" : placed.error().to_string());
  if (placed.ok()) {
    {
      const Lock lock(mutex_);
      file.why_kept.clear();
    }
    drop_placed(file);
    return {};
  }
  come_after_change(file);
  const Status failed = file.why_kept.empty() ? Status(why) : placed;
  if (file.local) return failed;
  const Status local = writers_.with([&](client::Writer& writer) -> Status {
    if (writer.run() != file.run) return Error(Code::agent_lost, "another agent has the job");
    return writer.wait(file.version, Level::local, local_patience_s);
  });
  const Lock lock(mutex_);
  file.local = local.ok();
  return failed;
}

// We have changed the placeholder ourselves, in part or by trying. The agent is to bring the file
// all the same. It may be at that just now: then it hears of it at the next try.
void Collector::come_after_change(PendingFile& file) {
  if (!file.is_untouched()) return;
  const bool changed = file.why_kept.empty() && file.changed_ns() > file.placed_ns;
  file.changed_here = file.changed_here || changed;
  if (!file.changed_here) return;
  const std::uint64_t placed_ns = std::max(system_clock().wall_ns(), file.changed_ns());
  const Status moved = writers_.with([&](client::Writer& writer) -> Status {
    if (writer.run() != file.run) return Error(Code::agent_lost, "another agent has the job");
    return writer.move(file.of_run(), file.path, file.path, placed_ns);
  });
  const Lock lock(mutex_);
  if (!moved.ok()) return;
  file.placed_ns = placed_ns;
  file.changed_here = false;
}

// Another program has put its own bytes at the path.
void Collector::leave(const PendingFile& file) {
  spdlog::warn("a file stays in the store job={} file={} version={} why=\"{}\"", job_, file.path,
               file.version, file.why_kept);
  const Lock lock(mutex_);
  left_[file.path] = fmt::format(
      "{} stays as it is: {}. What was captured is in version {} of job {}: fetch it with "
      "`backstay export {} {} -o DIR`",
      file.path, file.why_kept, file.version, job_, job_, file.version);
}

// Precondition: no other thread works on it.
void Collector::bring_and_note(const File& file, Lock& lock) {
  file->busy = true;
  lock.unlock();
  const Status brought = bring(*file);
  failpoint("collector.settled");
  lock.lock();
  note(file, brought);
}

void Collector::note(const File& file, const Status& brought) {
  constexpr unsigned doublings_max = 6;
  file->busy = false;
  ++file->tries;
  if (file->gone) {
    // Another one has taken its place.
  } else if (brought.ok()) {
    if (file->why_kept.empty()) left_.erase(file->path);
    release(*file);
  } else {
    file->why = brought.error().message();
    file->next_ns =
        system_clock().monotonic_ns() + (second_ns << std::min(file->tries - 1, doublings_max));
  }
  changed_.notify_all();
}

// `before`: what is left of it is its last sync.
void Collector::release(PendingFile& file, const File& before) {
  file.gone = true;
  const auto key = file.key();
  if (before) {
    open_[key] = before;
  } else {
    list_->unlist(key.first, key.second);
  }
  order_.remove_if([&](const File& one) { return one->key() == key; });
  files_.erase(key);
}

Collector::File Collector::next_to_bring(std::uint64_t now_ns) const {
  const auto found = std::ranges::find_if(order_, [&](const File& file) {
    return !file->busy && !file->moving && file->next_ns <= now_ns;
  });
  return found == order_.end() ? nullptr : *found;
}

// What the page lists is known to the agent alone: all of it is awaited. A power cut takes the page
// away; what the store has may not be at its place then.
void Collector::settle_leftovers() {
  if (list_->count() != 0 || ::access(store_.c_str(), F_OK) == 0) {
    leftovers_ = settle_of_agent();
  }
  const Lock lock(mutex_);
  list_->clear();
  ready_ = true;
  changed_.notify_all();
}

void Collector::run() {
  settle_leftovers();
  std::uint64_t next_note = deadline_in(note_every_s);
  Lock lock(mutex_);
  while (!ends_) {
    take_ended(lock);
    if (system_clock().monotonic_ns() >= next_note) {
      next_note = deadline_in(note_every_s);
      lock.unlock();
      note_written();
      lock.lock();
    }
    if (const File file = next_to_bring(system_clock().monotonic_ns())) {
      bring_and_note(file, lock);
    } else {
      changed_.wait_for(lock, std::chrono::seconds(1));
    }
  }
}

// --- counts and end ------------------------------------------------------------------------------

// A job of which nothing was ever captured has no event log, and gets none for this.
void Collector::note_written() {
  if (!written_.any() || !writers_.has_joined()) return;
  const wire::NoteWrites noted = written_.take();
  const Status sent = writers_.with([&](client::Writer& writer) { return writer.note(noted); });
  if (!sent.ok()) {
    spdlog::info("what was written is not in the event log job={} why=\"{}\"", job_,
                 sent.error().to_string());
  }
}

bool Collector::may_end() {
  const Lock lock(mutex_);
  return ready_ && open_.empty() && std::ranges::all_of(files_, [](const auto& entry) {
           return !entry.second->busy && !entry.second->moving && entry.second->local &&
                  !entry.second->why.empty();
         });
}

void Collector::end() {
  const Lock lock(mutex_);
  list_->clear();
  list_->end();
}

}  // namespace backstay::files
