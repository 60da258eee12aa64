#include "agent/disk/home.h"

#include <algorithm>

#include "agent/disk/catalog.h"
#include "agent/disk/home_mark.h"
#include "base/failpoint.h"
#include "base/folders.h"
#include "base/log.h"

namespace backstay::agent {

HomeWorker::HomeWorker(HomeWorld world, std::function<bool()> stop)
    : world_(std::move(world)),
      stop_(std::move(stop)),
      paths_(world_.job, *world_.files, *world_.clock) {}

void HomeWorker::handle(const HomeOrder& order) {
  std::visit([this](const auto& one) { handle(one); }, order);
}

// --- looking -------------------------------------------------------------------------------------

void HomeWorker::handle(const LookAtFiles& order) {
  Known& known = known_[order.record.version];
  known.record = order.record;
  known.node = order.node;
  world_.answer(FilesLookedAt{order.record.version, look(known)});
}

Status HomeWorker::open(const Known& known) {
  if (opened_ == known.record.version) return {};
  opened_ = 0;
  files_.reset();
  tier_.reset();
  BACKSTAY_ASSIGN(tier_, world_.open_tier());
  auto files = VersionFiles::open(*tier_, known.record, known.node);
  // What is wrong is read once more, as the trouble may pass.
  if (!files.ok()) files = VersionFiles::open(*tier_, known.record, known.node);
  BACKSTAY_ASSIGN(files_, std::move(files));
  opened_ = known.record.version;
  return {};
}

Result<FilesFound> HomeWorker::look(const Known& known) {
  BACKSTAY_TRY(open(known));
  std::string why_not;
  BACKSTAY_ASSIGN(auto mark, read_home_mark(*tier_, known.record, known.node, &why_not));
  if (!why_not.empty()) {
    spdlog::warn(
        "a home mark is not good, its files are brought again job={} version={} why=\"{}\"",
        world_.job, known.record.version, why_not);
  }
  FilesFound found;
  for (const auto& [path, entry] : files_->files()) {
    found.files.push_back({path, entry.file.placed_ns, entry.file.bytes});
  }
  std::ranges::stable_sort(found.files, {}, &FileInVersion::placed_ns);
  found.marked = mark.has_value();
  if (mark) found.not_home = std::move(mark->files);
  return found;
}

// --- bringing ------------------------------------------------------------------------------------

void HomeWorker::handle(const BringFile& order) {
  auto brought = bring(order);
  if (brought.ok()) {
    brought->version = order.version;
    return world_.answer(*brought);
  }
  const Error& why = brought.error();
  world_.answer(FileBrought{order.version, order.to, Brought::failed, why.message(), why.code()});
}

Result<FileBrought> HomeWorker::bring(const BringFile& order) {
  const auto known = known_.find(order.version);
  if (known == known_.end()) return Error(Code::internal, "a version that was not looked at");
  const auto hold = world_.hold({order.version, known->second.record.run});
  if (!hold) {
    return FileBrought{.path = order.to, .how = Brought::held, .why = "a program has it open"};
  }
  BACKSTAY_TRY(open(known->second));
  const auto entry = files_->files().find(order.path);
  if (entry == files_->files().end()) return Error(Code::internal, "a file that is not there");
  VersionFiles::Entry placed = entry->second;
  placed.file.path = order.to;
  placed.file.placed_ns = order.placed_ns;
  FileBrought brought = paths_.bring(*files_, placed, stop_);
  if (brought.how == Brought::home) known->second.unsynced.insert(parent_of(order.to));
  if (brought.code == Code::corrupt || brought.code == Code::io) opened_ = 0;  // read it again
  return brought;
}

// --- marking -------------------------------------------------------------------------------------

void HomeWorker::handle(const MarkHome& order) {
  HomeMarked answer{order.version, {}};
  answer.status = mark(order, answer);
  world_.answer(std::move(answer));
}

Status HomeWorker::mark(const MarkHome& order, HomeMarked& answer) {
  const auto at = known_.find(order.version);
  if (at == known_.end()) return Error(Code::internal, "a version that was not looked at");
  Known& known = at->second;
  for (const std::string& folder : std::exchange(known.unsynced, {})) {
    const Status synced = world_.files->sync_directory(folder);
    if (!synced.ok()) answer.unsynced.emplace(folder, synced.error());
  }
  failpoint("home.5");
  if (!answer.unsynced.empty()) return {};
  BACKSTAY_ASSIGN(const auto tier, world_.open_tier());
  // A version that was removed meanwhile is not to come back as a folder with a mark.
  if (look_at(*tier, known.record.job, order.version).level == Level::none) {
    return Error(Code::not_found, "the version is not there any more");
  }
  const format::HomeMark mark{known.record.job, known.node, known.record.version, known.record.run,
                              order.files};
  BACKSTAY_TRY(write_home_mark(*tier, mark));
  failpoint("home.6");
  return {};
}

}  // namespace backstay::agent
