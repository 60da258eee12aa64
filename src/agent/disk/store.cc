#include "agent/disk/store.h"

#include <algorithm>
#include <map>
#include <set>

#include "agent/disk/chunk_reads.h"
#include "agent/disk/commands_for_later.h"
#include "agent/version/held_files.h"
#include "base/at_once.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"
#include "store/catalog.h"
#include "store/needed_segment.h"
#include "store/part_writer.h"
#include "store/records.h"

namespace backstay::agent {

class StoreWorker::Impl {
 public:
  Impl(std::string job, const MakeTier& make_tier, PostEvent post_event, AppendLine append_event)
      : job_(std::move(job)),
        tier_(make_tier()),
        post_event_(std::move(post_event)),
        append_event_(std::move(append_event)),
        reads_([this](Event event) { post_event_(std::move(event)); }) {}

  void handle(Command& command) {
    std::visit([this](auto& one) { handle(one); }, command);
  }
  bool has_tier() const { return tier_.ok(); }
  bool busy() const { return writes_in_flight() > 0 || reads_.open(); }
  bool puts_off() const { return !later_.empty(); }

  void take(Command& command) {
    if (later_.take(command)) {
      if (later_.full()) do_later();
      return;
    }
    if (!later_.lets_pass(command)) do_later();
    handle(command);
  }

  void do_later() {
    CommandsForLater now = std::exchange(later_, later_.emptied());
    if (!now.seals.empty()) seal(now.seals);
    if (!now.records.empty()) record(now.records);
    if (!now.removals.empty()) (void)remove(now.removals, /*at_once=*/true);
  }

  void reap(bool wait) {
    // Reading, and each version that is written, has a ring of its own: the thread sleeps on one of
    // them, and then looks at the others.
    bool sleeps = wait && !reads_.open();
    if (reads_.open()) reads_.reap(wait);
    for (auto& [version, part] : parts_) {
      if (part.in_flight() > 0) reap_writes(part, std::exchange(sleeps, false));
    }
    give_up_failed();
  }

 private:
  unsigned writes_in_flight() const {
    unsigned sum = 0;
    for (const auto& [version, part] : parts_) sum += part.in_flight();
    return sum;
  }

  // --- scan and removal ---------------------------------------------------------------------
  void handle(ScanJob& command) {
    if (!tier_.ok()) return post_event_(Scanned{tier_.error()});
    post_event_(Scanned{store::scan_for_agent(**tier_, job_, command.clean)});
    if (!command.clean) return;
    // Programs need not wait for this: the first version does, if it comes that soon.
    if (const Status ready = (*tier_)->prepare(); !ready.ok()) {
      spdlog::warn("the tier is not ready: {}", ready.error().to_string());
    }
  }

  // Users remove a job's folder to begin again, and purgers remove old files.
  void handle(LookAgain& command) {
    Looked looked;
    auto there =
        tier_.ok() ? store::scan(**tier_, job_) : Result<std::vector<StoredVersion>>(tier_.error());
    if (!there.ok()) {
      spdlog::warn("cannot look at the versions job={} error=\"{}\"", job_,
                   there.error().message());
      return post_event_(std::move(looked));  // what is known stays: nothing tells that it is gone
    }
    std::set<VersionNumber> numbers;
    for (const StoredVersion& stored : *there) {
      if (stored.level != Level::none || !stored.damage.empty()) numbers.insert(stored.version);
    }
    for (const VersionNumber number : command.known) {
      if (!numbers.contains(number)) looked.gone.push_back(number);
    }
    post_event_(std::move(looked));
  }

  void handle(RemoveVersions& command) { (void)remove(command.versions); }

  // True if there was one. `at_once`: none of them needs another one.
  bool remove(const std::vector<VersionNumber>& versions, bool at_once = false) {
    Removed removed;
    std::set<VersionNumber> needed = in_use_needs_;  // by versions that stay
    for (const auto& [version, needs] : sealed_needs_) needed.insert(needs.begin(), needs.end());
    std::map<VersionNumber, bool> gone;
    Pieces pieces;
    for (const VersionNumber version : at_once ? versions : std::vector<VersionNumber>()) {
      if (version == in_use_ || needed.contains(version)) continue;
      const auto [at, fresh] = gone.try_emplace(version);
      if (fresh) pieces.emplace_back([this, at = at] { at->second = remove_one(at->first); });
    }
    run_at_once(pieces);
    for (const VersionNumber version : versions) {
      const bool stays = version == in_use_ || needed.contains(version);
      const bool done = !stays && (at_once ? gone.at(version) : remove_one(version));
      (done ? removed.versions : removed.stayed).push_back(version);
      done ? forget(version) : add_needs_of(version, needed);
    }
    const bool any = !removed.versions.empty();
    if (!versions.empty()) post_event_(std::move(removed));
    return any;
  }

  void add_needs_of(VersionNumber version, std::set<VersionNumber>& needed) {
    if (!tier_.ok()) return;
    const StoredVersion stays = store::look_at(**tier_, job_, version);
    for (const format::Need& need : store::needs_there(**tier_, job_, stays))
      needed.insert(need.version);
  }

  bool remove_one(VersionNumber version) {  // any thread
    const Status status = tier_.ok() ? (*tier_)->remove(format::version_folder(job_, version))
                                     : Status(tier_.error());
    if (!status.ok()) {
      spdlog::warn("cannot remove a version job={} version={} error=\"{}\"", job_, version,
                   status.error().to_string());
    }
    return status.ok();
  }

  void forget(VersionNumber version) {
    unrecorded_.erase(version);
    recorded_early_.erase(version);
    sealed_needs_.erase(version);
  }

  void handle(SetAside& command) {
    spdlog::warn("set aside job={} version={} why=\"{}\"", job_, command.version, command.why);
    const Status status = tier_.ok() ? store::set_aside(**tier_, job_, command.version, command.why)
                                     : Status(tier_.error());
    if (!status.ok()) spdlog::warn("cannot write the mark: {}", status.error().to_string());
  }

  // --- writing ------------------------------------------------------------------------------
  void handle(OpenVersion& command) {
    const VersionNumber version = command.info.version;
    if (!tier_.ok()) return failed(version, tier_.error());
    const auto [at, fresh] = parts_.try_emplace(version, **tier_, job_, command.info);
    BACKSTAY_CHECK(fresh);
    store::PartWriter& part = at->second;
    Status opened = part.open(std::max(command.bytes, command.hoped_bytes));
    if (!opened.ok() && command.hoped_bytes > command.bytes) opened = part.open(command.bytes);
    if (!opened.ok() && opened.error().code() == Code::no_space && make_room(command.reclaim)) {
      opened = part.open(command.bytes);
    }
    if (opened.ok()) return;
    part.fail(opened.error());
    give_up(version);
  }

  // Open, and without an error; else null.
  store::PartWriter* part_of(VersionNumber version) {
    const auto found = parts_.find(version);
    return found == parts_.end() || found->second.error() ? nullptr : &found->second;
  }

  void handle(WriteChunk& command) {
    store::PartWriter* part = part_of(command.version);
    while (part != nullptr && part->full()) {
      reap_writes(*part, true);
      part = part_of(command.version);
    }
    if (part != nullptr) {
      return part->write(
          {command.object, command.object_offset, command.length, command.checksum, command.memory},
          std::uint64_t{command.buffer} << 32 | command.length);
    }
    post_event_(ChunkWritten{command.version, command.buffer, 0});
    give_up_failed();
  }

  void handle(SealVersion& command) {
    std::vector<SealVersion> one(1);
    one.front() = std::move(command);
    seal(one);
  }

  void seal(std::vector<SealVersion>& commands) {
    std::vector<store::Finishing> parts;
    for (SealVersion& command : commands) {
      const auto found = parts_.find(command.version);
      if (found == parts_.end()) continue;
      store::PartWriter& part = found->second;
      while (part.in_flight() > 0) reap_writes(part, true);
      part.error() ? give_up(command.version) : parts.push_back({&part, &command});
    }
    store::finish_at_once(parts);
    for (store::Finishing& one : parts) {
      if (one.finished->ok()) {
        sealed(**one.finished);
      } else {
        one.part->fail(one.finished->error());
        give_up(one.end->version);
      }
    }
  }

  void sealed(const store::FinishedPart& part) {
    const format::CommitRecord& record = part.record;
    parts_.erase(record.version);
    if (record.nodes == 1) unrecorded_[record.version] = record;
    for (const format::Need& need : part.manifest->needs) {
      sealed_needs_[record.version].insert(need.version);
    }
    StoredVersion stored{.version = record.version, .record = record};
    stored.in_doubt = record.nodes > 1;
    post_event_(VersionSealed{std::move(stored), part.manifest, part.header});
  }

  void handle(RecordVersion& command) {
    std::vector<RecordVersion> one{std::move(command)};
    record(one);
  }

  void record(std::vector<RecordVersion>& commands) {
    std::vector<store::Recording> records;
    for (RecordVersion& command : commands) {
      if (is_to_record(command)) records.push_back({&command.record});
    }
    if (!records.empty()) store::put_at_once(**tier_, job_, records);
    for (const auto& [record, done] : records) {
      if (!done.ok()) {
        record_failed(*record, done.error());
        continue;
      }
      unrecorded_.erase(record->version);
      post_event_(VersionRecorded{StoredVersion{record->version, record->level, *record}});
    }
  }

  // False: it is answered.
  bool is_to_record(const RecordVersion& command) {
    const format::CommitRecord& record = command.record;
    sealed_needs_.erase(record.version);
    const Status here = has_part(command);
    if (!here.ok() && here.error().code() != Code::not_found) {
      record_failed(record, here.error());
    } else if (!here.ok()) {
      const Error why(Code::not_found, "no part of it is here any more");
      post_event_(RecordFailed{record.version, record.level, why});
    } else if (const auto early = recorded_early_.extract(record.version); !early.empty()) {
      post_event_(VersionRecorded{StoredVersion{record.version, Level::local, early.mapped()}});
    } else {
      return true;
    }
    return false;
  }

  Status has_part(const RecordVersion& command) {
    if (!tier_.ok()) return tier_.error();
    if (unrecorded_.contains(command.record.version)) return {};
    return store::find_part(**tier_, job_, command.record, command.part);
  }

  // Versions of one node take the place of those to be removed. Their order to be recorded may
  // still be waiting behind this one, and no other node has a say in it.
  bool make_room(const Reclaim& reclaim) {
    do_later();
    for (const auto& [version, record] : std::exchange(unrecorded_, {})) {
      format::CommitRecord now = record;
      now.level = Level::local;
      const bool done = store::put_record(**tier_, now).ok();
      (done ? recorded_early_[version] : unrecorded_[version]) = done ? now : record;
    }
    const bool all = std::ranges::all_of(reclaim.once_recorded, [this](VersionNumber version) {
      return store::look_at(**tier_, job_, version).level != Level::none;
    });
    return remove(all ? reclaim.later : reclaim.versions);
  }

  // In a run of one node no other node can have the record: the version is given up as if its data
  // could not be written.
  void record_failed(const format::CommitRecord& record, const Error& why) {
    if (record.nodes > 1) return post_event_(RecordFailed{record.version, record.level, why});
    (void)remove_one(record.version);
    failed(record.version, why);
  }

  void handle(AbortVersion& command) {
    if (const auto found = parts_.find(command.version); found != parts_.end()) {
      while (found->second.in_flight() > 0) reap_writes(found->second, true);
      parts_.erase(found);
    }
    sealed_needs_.erase(command.version);
    if (!tier_.ok()) return;
    const std::string folder = format::version_folder(job_, command.version);
    const auto manifest = (*tier_)->open(format::manifest_name(folder, command.node));
    if (manifest.ok() || manifest.error().code() != Code::not_found) return;  // it may be prepared
    (void)remove_one(command.version);
  }

  // After its first error the rest of a version's chunks is not written any more.
  void give_up_failed() {
    for (auto at = parts_.begin(); at != parts_.end();) {
      const auto& [version, part] = *at++;
      if (part.error()) give_up(version);
    }
  }

  void give_up(VersionNumber version) {
    store::PartWriter& part = parts_.at(version);
    while (part.in_flight() > 0) reap_writes(part, true);
    const Error why = *part.error();
    if (const Status status = part.remove(); !status.ok()) {
      spdlog::warn("cannot remove the rest of it: {}", status.error().to_string());
    }
    parts_.erase(version);
    failed(version, why);
  }

  void failed(VersionNumber version, const Error& why) {
    spdlog::error("version could not be written job={} version={} error=\"{}\"", job_, version,
                  why.to_string());
    unrecorded_.erase(version);
    post_event_(VersionFailed{version, why});
  }

  // --- reading ------------------------------------------------------------------------------
  void handle(LoadManifest& command) {
    const VersionNumber version = command.record.version;
    ManifestLoaded event{version, Error(Code::again, "the version was removed meanwhile")};
    if (!tier_.ok()) {
      event.manifest = tier_.error();
    } else {
      in_use_ = version;
      auto manifest = store::read_manifest(**tier_, job_, command.record, command.node);
      if (manifest.ok()) {
        for (const format::Need& need : manifest->needs) in_use_needs_.insert(need.version);
      }
      if (manifest.ok() || !is_gone(version)) event.manifest = std::move(manifest);
    }
    post_event_(std::move(event));
  }

  // A tool, or another node's agent, has removed it: no damage.
  bool is_gone(VersionNumber version) {
    StoredVersion now = store::look_at(**tier_, job_, version);
    return !store::exists(**tier_, job_, now);
  }

  void handle(ReadChunk& command) {
    const FileOf segment = command.older.value_or(FileOf{command.version, 0, command.node});
    if (const Status status = open_segment(segment); !status.ok()) {
      return post_event_(
          ChunkRead{command.version, command.buffer, command.ticket, status, command.chunk.length});
    }
    reads_.read(command);
  }

  Status open_segment(const FileOf& segment) {
    if (reads_.has(segment)) return {};
    reads_.finish();
    if (!tier_.ok()) return tier_.error();
    BACKSTAY_ASSIGN(auto reader, segment.run == 0
                                     ? (*tier_)->open(store::names_of(job_, segment).data)
                                     : store::open_needed(**tier_, job_, segment));
    reads_.begin(segment, std::move(reader));
    return {};
  }

  void handle(DoneReading&) {
    reads_.finish();
    in_use_ = 0;
    in_use_needs_.clear();
  }

  void handle(Settle& command) {
    while (busy()) reap(/*wait=*/true);
    post_event_(Settled{command.ticket});
  }

  void handle(AppendEvent& command) {
    if (append_event_) append_event_(command.line);
  }

  // --- completions --------------------------------------------------------------------------
  void reap_writes(store::PartWriter& part, bool wait) {
    for (const tier::Done& done : part.reap(wait)) {
      const auto length = static_cast<std::uint32_t>(done.tag);
      post_event_(ChunkWritten{part.info().version, static_cast<std::uint32_t>(done.tag >> 32),
                               done.status.ok() ? length : 0});
    }
  }

  const std::string job_;
  Result<std::unique_ptr<tier::Tier>> tier_;
  PostEvent post_event_;
  AppendLine append_event_;
  // Of versions of one node that wait for their order to be recorded.
  std::map<VersionNumber, format::CommitRecord> unrecorded_;
  // Of those that were recorded to make room, before that order came.
  std::map<VersionNumber, format::CommitRecord> recorded_early_;
  std::map<VersionNumber, store::PartWriter> parts_;  // that are written
  // Of sealed ones without an order to record: what may go was chosen before they were known.
  std::map<VersionNumber, std::set<VersionNumber>> sealed_needs_;
  ChunkReads reads_;
  VersionNumber in_use_ = 0;  // a restart has its manifest; 0: none
  std::set<VersionNumber> in_use_needs_;
  CommandsForLater later_;
};

StoreWorker::StoreWorker(std::string job, const MakeTier& make_tier, PostEvent post_event,
                         AppendLine append_event)
    : impl_(std::make_unique<Impl>(std::move(job), make_tier, std::move(post_event),
                                   std::move(append_event))) {}

StoreWorker::~StoreWorker() = default;

void StoreWorker::handle(Command command) { impl_->handle(command); }

void StoreWorker::take(Command command) { impl_->take(command); }

void StoreWorker::do_later() { impl_->do_later(); }
bool StoreWorker::puts_off() const { return impl_->puts_off(); }

bool StoreWorker::has_tier() const { return impl_->has_tier(); }

bool StoreWorker::busy() const { return impl_->busy(); }

void StoreWorker::reap(bool wait) { impl_->reap(wait); }

}  // namespace backstay::agent
