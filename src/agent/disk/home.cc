#include "agent/disk/home.h"

#include <algorithm>

#include "base/failpoint.h"
#include "base/folders.h"
#include "base/log.h"
#include "store/catalog.h"
#include "store/home/home_mark.h"

namespace backstay::agent {

HomeWorker::HomeWorker(HomeWorld world, std::function<bool()> stop)
    : world_(std::move(world)),
      stop_(std::move(stop)),
      paths_(world_.job, *world_.files, *world_.clock),
      note_(*world_.files, world_.note, world_.boot) {}

void HomeWorker::handle(const HomeOrders& orders) {
  std::vector<const BringFile*> files;
  std::vector<const MarkHome*> marks;
  for (const HomeOrder& order : orders) {
    if (const auto* one = std::get_if<LookAtFiles>(&order)) look(*one);
    if (const auto* one = std::get_if<BringFile>(&order)) files.push_back(one);
    if (const auto* one = std::get_if<MarkHome>(&order)) marks.push_back(one);
  }
  if (!files.empty()) bring(files);
  if (!marks.empty()) mark(marks);
}

Status HomeWorker::open_tier() {
  if (tier_ != nullptr) return {};
  BACKSTAY_ASSIGN(tier_, world_.open_tier());
  return {};
}

// --- looking -------------------------------------------------------------------------------------

void HomeWorker::look(const LookAtFiles& order) {
  Known& known = known_[order.record.version];
  known.record = order.record;
  known.node = order.node;
  known.before = order.before;
  world_.answer(FilesLookedAt{order.record.version, found_in(known)});
}

Status HomeWorker::open(const Known& known) {
  if (opened_ == known.record.version) return {};
  opened_ = 0;
  files_.reset();
  BACKSTAY_TRY(open_tier());
  auto files = store::VersionFiles::open(*tier_, known.record, known.node);
  // What is wrong is read once more, as the trouble may pass.
  if (!files.ok()) files = store::VersionFiles::open(*tier_, known.record, known.node);
  if (!files.ok()) close();
  BACKSTAY_ASSIGN(files_, std::move(files));
  opened_ = known.record.version;
  return {};
}

Result<FilesFound> HomeWorker::found_in(Known& known) {
  BACKSTAY_TRY(open(known));
  std::string why_not;
  BACKSTAY_ASSIGN(auto mark, store::read_home_mark(*tier_, known.record, known.node, &why_not));
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
  find_placed(known, found);
  return found;
}

// A file that was about to be renamed, and has no temporary file, was renamed.
void HomeWorker::find_placed(Known& known, FilesFound& found) {
  const bool may_be_left = known.before && !found.marked;
  for (FileInVersion& file : found.files) {
    const auto* noted = note_.find({known.record.run, known.record.version, file.path});
    if (noted == nullptr && !may_be_left) continue;
    const bool was_to_be_renamed = noted != nullptr && !noted->made_only;
    const store::PlacingNote::Place place =
        noted == nullptr ? store::PlacingNote::Place{file.path, 0} : *noted;
    const auto temporary = world_.files->look(store::temporary_name(world_.job, place.to));
    if (temporary.ok()) remove_left(place.to);  // `noted` goes with it
    const bool renamed = !temporary.ok() && temporary.error().code() == Code::not_found;
    if (!was_to_be_renamed || !renamed) continue;
    file.stands_at = place.to;
    file.stands_ns = place.placed_ns;
    known.unsynced[parent_of(place.to)] = false;
  }
}

// What an agent that was killed has left. This file's turn may never come: its program may have
// renamed it, or call it back.
void HomeWorker::remove_left(const std::string& to) {
  if (note_.take_back(to).ok()) (void)world_.files->remove(store::temporary_name(world_.job, to));
}

// --- bringing ------------------------------------------------------------------------------------

void HomeWorker::bring(const std::vector<const BringFile*>& orders) {
  std::vector<OnItsWay> all;
  for (const BringFile* order : orders) all.push_back(begin(*order));
  Pieces syncs;
  for (OnItsWay& one : all) {
    if (one.file.comes()) syncs.emplace_back([&file = one.file] { file.sync(); });
  }
  world_.at_once(syncs);
  for (OnItsWay& one : all) {
    FileBrought brought = end(one);
    brought.version = one.order->version;
    world_.answer(std::move(brought));
  }
}

HomeWorker::OnItsWay HomeWorker::begin(const BringFile& order) {
  const auto known = known_.find(order.version);
  if (known == known_.end()) {
    OnItsWay unknown{&order};
    unknown.file.status = Error(Code::internal, "a version that was not looked at");
    return unknown;
  }
  OnItsWay one{&order, world_.hold({order.version, known->second.record.run})};
  if (!one.hold) {
    one.file.how = Brought::held;
    return one;
  }
  auto begun = written(order, known->second);
  if (begun.ok()) {
    one.file = std::move(*begun);
  } else {
    one.file.status = begun.error();
  }
  return one;
}

Result<store::HomeFile> HomeWorker::written(const BringFile& order, const Known& known) {
  BACKSTAY_TRY(open(known));
  const auto entry = files_->files().find(order.path);
  if (entry == files_->files().end()) return Error(Code::internal, "a file that is not there");
  store::VersionFiles::Entry placed = entry->second;
  placed.file.path = order.to;
  placed.file.placed_ns = order.placed_ns;
  return paths_.begin(*files_, placed, stop_, [&] {
    note_.made(noted(order, known), {order.to, order.placed_ns});
  });
}

store::PlacingNote::File HomeWorker::noted(const BringFile& order, const Known& known) const {
  return {known.record.run, order.version, order.path};
}

FileBrought HomeWorker::end(OnItsWay& one) {
  const store::HomeFile& file = one.file;
  if (file.how == Brought::held) {
    return {.path = one.order->to, .how = Brought::held, .why = "a program has it open"};
  }
  if (file.temporary.empty()) {  // it was not begun
    const Error& why = file.status.error();
    return {
        .path = one.order->to, .how = Brought::failed, .why = why.message(), .code = why.code()};
  }
  const FileBrought brought = bring_to_path(one);
  if (brought.how == Brought::home) {
    known_.at(one.order->version).unsynced.emplace(parent_of(one.order->to), true);
  }
  if (brought.code == Code::corrupt || brought.code == Code::io) opened_ = 0;  // read it again
  return brought;
}

FileBrought HomeWorker::bring_to_path(OnItsWay& one) {
  const BringFile& order = *one.order;
  paths_.look_again(one.file);
  if (one.file.comes()) {
    note_.add(noted(order, known_.at(order.version)), {order.to, order.placed_ns});
  }
  paths_.place(one.file);
  if (!one.file.placed) one.file.temporary_stays = !note_.take_back(order.to).ok();
  return paths_.finish(one.file);
}

// --- marking -------------------------------------------------------------------------------------

void HomeWorker::mark(const std::vector<const MarkHome*>& orders) {
  const std::map<std::string, Status> folders = sync_folders(orders);
  const Status tier = open_tier();
  std::vector<HomeMarked> answers;
  Pieces writes;
  answers.reserve(orders.size());
  for (const MarkHome* order : orders) {
    HomeMarked& answer = answers.emplace_back(HomeMarked{order->version, tier});
    const auto known = known_.find(order->version);
    if (known == known_.end()) {
      answer.status = Error(Code::internal, "a version that was not looked at");
      continue;
    }
    for (const auto& [folder, placed] : std::exchange(known->second.unsynced, {})) {
      // Whoever has removed a folder has removed the files there before. What was there in the life
      // of another agent is not known.
      const Status& status = folders.at(folder);
      const Status synced = placed ? io::gone_is_fine(status) : status;
      if (!synced.ok()) answer.unsynced.emplace(folder, synced.error());
    }
    failpoint("home.5");
    if (!answer.unsynced.empty()) {
      answer.status = Status();
      note_.take_back(order->version);
    }
    if (!answer.unsynced.empty() || !tier.ok()) continue;
    writes.emplace_back([this, order, &answer] { answer.status = write_mark(*order); });
  }
  world_.at_once(writes);
  for (HomeMarked& answer : answers) {
    if (!answer.status.ok()) close();
    if (answer.status.ok() && answer.unsynced.empty()) note_.marked(answer.version);
    world_.answer(std::move(answer));
  }
}

std::map<std::string, Status> HomeWorker::sync_folders(const std::vector<const MarkHome*>& orders) {
  std::map<std::string, Status> folders;
  for (const MarkHome* order : orders) {
    const auto known = known_.find(order->version);
    if (known == known_.end()) continue;
    for (const auto& [folder, placed] : known->second.unsynced) folders.emplace(folder, Status());
  }
  Pieces syncs;
  for (auto& [folder, status] : folders) {
    syncs.emplace_back([this, &folder = folder, &status = status] {
      status = world_.files->sync_directory(folder);
    });
  }
  world_.at_once(syncs);
  return folders;
}

// Any thread.
Status HomeWorker::write_mark(const MarkHome& order) const {
  const Known& known = known_.at(order.version);
  // A version that was removed meanwhile is not to come back as a folder with a mark.
  if (store::look_at(*tier_, known.record.job, order.version).level == Level::none) {
    return Error(Code::not_found, "the version is not there any more");
  }
  const format::HomeMark mark{known.record.job, known.node, known.record.version, known.record.run,
                              order.files};
  BACKSTAY_TRY(store::write_home_mark(*tier_, mark));
  failpoint("home.6");
  return {};
}

}  // namespace backstay::agent
