#include "store/home/lost_files.h"

#include <algorithm>
#include <tuple>

#include "base/failpoint.h"
#include "base/folders.h"
#include "store/catalog.h"
#include "store/home/home_mark.h"

namespace backstay::store {

namespace {

constexpr NodeId node = 0;  // a files job has one node

FileBrought failed(const Error& why) { return {0, "", Brought::failed, why.message(), why.code()}; }

// After an error the files are opened once more: the trouble may have passed.
Result<std::unique_ptr<VersionFiles>> open_files(tier::Tier& tier,
                                                 const format::CommitRecord& record) {
  auto files = VersionFiles::open(tier, record, node);
  return files.ok() ? std::move(files) : VersionFiles::open(tier, record, node);
}

// Whether the file is still to be brought. Without a mark each one is.
bool is_pending(const std::optional<format::HomeMark>& mark, const std::string& path) {
  if (!mark) return true;
  const auto at = std::ranges::find(mark->files, path, &format::FileNotHome::path);
  return at != mark->files.end() && at->how != format::NotHome::kept;
}

}  // namespace

LostFiles::LostFiles(LostFilesWorld world)
    : world_(std::move(world)), paths_(world_.name, *world_.files, *world_.clock) {}

// --- what there is -------------------------------------------------------------------------------

void LostFiles::add(const std::string& job, VersionNumber newer_elsewhere) {
  const auto found = scan(*world_.from, job);
  if (!found.ok()) return outcome_.left.push_back({job, 0, "", found.error().message()});
  for (const StoredVersion& stored : *found) {
    if (!stored.damage.empty()) {
      outcome_.left.push_back({job, stored.version, "", stored.damage});
    } else if (stored.level == Level::none) {
      outcome_.left.push_back({job, stored.version, "",
                               stored.unreadable
                                   ? stored.unreadable->message()
                                   : "it was not copied whole before its host was lost"});
    } else {
      add_version(stored.record, stored.version < newer_elsewhere);
    }
  }
}

void LostFiles::add_version(const format::CommitRecord& record, bool overtaken) {
  auto files = open_files(*world_.from, record);
  const auto mark = read_home_mark(*world_.from, record, node);
  if (!files.ok() || !mark.ok()) {
    const Error& why = files.ok() ? mark.error() : files.error();
    return outcome_.left.push_back({record.job, record.version, "", why.message()});
  }
  versions_.push_back({.record = record, .overtaken = overtaken});
  if (*mark) {
    for (const format::FileNotHome& file : (*mark)->files) {
      if (file.how == format::NotHome::kept) versions_.back().not_home.push_back(file);
    }
  }
  for (const auto& [path, entry] : (*files)->files()) {
    const bool pending = is_pending(*mark, path);
    versions_.back().pending = versions_.back().pending || pending;
    add_record({versions_.size() - 1, entry, pending});
  }
}

void LostFiles::add_record(Record record) {
  const auto age = [&](const Record& one) {
    return std::tuple(one.entry.file.placed_ns, versions_[one.version].record.version);
  };
  const auto [at, first] = newest_.try_emplace(record.entry.file.path, records_.size());
  if (!first && age(record) >= age(records_[at->second])) at->second = records_.size();
  records_.push_back(std::move(record));
}

// --- bringing ------------------------------------------------------------------------------------

LostFiles::Outcome LostFiles::bring() {
  std::vector<std::size_t> order;
  for (const auto& [path, at] : newest_) order.push_back(at);
  std::ranges::stable_sort(order, {}, [&](std::size_t at) {
    return std::tuple(records_[at].entry.file.placed_ns, records_[at].version);
  });
  for (const std::size_t at : order) {
    if (records_[at].pending) bring(records_[at]);
  }
  sync_folders();
  for (const std::size_t at : order) {
    if (records_[at].pending) note(records_[at]);
  }
  mark();
  return std::move(outcome_);
}

Result<VersionFiles*> LostFiles::open(std::size_t version) {
  if (files_ == nullptr || opened_ != version) {
    BACKSTAY_ASSIGN(files_, open_files(*world_.from, versions_[version].record));
    opened_ = version;
  }
  return files_.get();
}

void LostFiles::bring(Record& record) {
  record.came = brought(record);
  if (record.came.how == Brought::overtaken) record.came.how = Brought::home;
}

FileBrought LostFiles::brought(const Record& record) {
  const format::CapturedFile& file = record.entry.file;
  if (const Status same = world_.same_folder(parent_of(file.path)); !same.ok())
    return failed(same.error());
  // The host's own agent may have left a temporary file. Where the folder refuses, it stays.
  const format::CommitRecord& of = versions_[record.version].record;
  (void)world_.files->remove(temporary_name(of.job, file.path)).ok();
  // A placeholder, or the old file, stands there from before the capture until the file is home.
  const auto there = world_.files->look(file.path);
  if (!there.ok() && there.error().code() == Code::not_found) {
    return {0, "", Brought::kept, "nothing is at its path any more: it was removed or renamed"};
  }
  const auto version = open(record.version);
  if (!version.ok()) return failed(version.error());
  const auto same = stands_there(**version, record.entry);
  if (same.ok() && *same) return {};
  HomeFile begun = paths_.begin(**version, record.entry, [] { return false; });
  begun.sync();
  FileBrought came = paths_.end(begun);
  if (came.code == Code::corrupt || came.code == Code::io) files_.reset();  // it is read again
  if (came.how == Brought::kept && versions_[record.version].overtaken) return {};
  if (came.how == Brought::home) {
    outcome_.brought.push_back({of.job, of.version, file.path});
  }
  return came;
}

// Whether the file stands at its path with all its bytes: its host brought it before it was lost.
// Such a file is left alone, so that it keeps the mode and owner that a user has given it since.
Result<bool> LostFiles::stands_there(VersionFiles& version, const VersionFiles::Entry& entry) {
  const format::CapturedFile& file = entry.file;
  BACKSTAY_ASSIGN(const io::Facts facts, world_.files->look(file.path));
  const io::Moment modified{file.modified.seconds, file.modified.nanoseconds};
  if (!facts.file || facts.bytes != file.bytes || facts.attributes.modified != modified)
    return false;
  BACKSTAY_ASSIGN(const auto opened, world_.files->open(file.path, io::Open::read));
  bool same = true;
  Buffer there;
  const Status read = version.read(entry, [&](std::uint64_t offset, Bytes bytes) {
    there.resize(bytes.size());
    const Status status = opened->read_at(offset, there);
    same = same && status.ok() && std::ranges::equal(there, bytes);
    return status;
  });
  if (!read.ok()) return read.error();
  if (same) BACKSTAY_TRY(opened->sync());
  return same;
}

void LostFiles::sync_folders() {
  std::map<std::string, Status> folders;
  for (Record& record : records_) {
    if (!record.pending || record.came.how != Brought::home) continue;
    const auto [at, first] = folders.try_emplace(parent_of(record.entry.file.path));
    if (first) at->second = world_.files->sync_directory(at->first);
    if (!at->second.ok()) record.came = failed(at->second.error());
  }
  failpoint("home.5");
}

// --- what is left --------------------------------------------------------------------------------

void LostFiles::note(const Record& record) {
  const format::CommitRecord& of = versions_[record.version].record;
  const std::string& path = record.entry.file.path;
  if (record.came.how == Brought::home) return;
  outcome_.left.push_back({of.job, of.version, path, record.came.why});
}

// An older record of a path is at home once the newest one is, and waits while that one waits.
void LostFiles::mark() {
  for (const Record& record : records_) {
    if (!record.pending) continue;
    const Record& newest = records_[newest_.at(record.entry.file.path)];
    const bool itself = &newest == &record;
    const bool waits = newest.pending && newest.came.how == Brought::failed;
    if (!waits && (!itself || newest.came.how == Brought::home)) continue;
    versions_[record.version].not_home.push_back(
        {record.entry.file.path, waits ? format::NotHome::waits : format::NotHome::kept,
         itself ? newest.came.why : "a newer file of its path waits"});
  }
  for (Version& version : versions_) {
    if (!version.pending) continue;
    std::ranges::sort(version.not_home, {}, &format::FileNotHome::path);
    const format::CommitRecord& of = version.record;
    const Status marked = write_home_mark(
        *world_.from, {of.job, node, of.version, of.run, std::move(version.not_home)});
    if (marked.ok()) {
      failpoint("home.6");
    } else {
      outcome_.left.push_back({of.job, of.version, "", marked.error().message()});
    }
  }
}

}  // namespace backstay::store
