#include "agent/disk/store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "agent/disk/needed_segment.h"
#include "agent/disk/part_writer.h"
#include "agent/version/held_files.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::agent {

class StoreWorker::Impl {
 public:
  Impl(std::string job, const MakeTier& make_tier, PostEvent post_event, AppendLine append_event)
      : job_(std::move(job)),
        tier_(make_tier()),
        post_event_(std::move(post_event)),
        append_event_(std::move(append_event)) {}

  void handle(Command& command) {
    std::visit([this](auto& one) { handle(one); }, command);
  }
  bool has_tier() const { return tier_.ok(); }
  bool busy() const { return writes_in_flight() > 0 || reads_open(); }

  void reap(bool wait) {
    // Reading, and each version that is written, has a ring of its own: the thread sleeps on one of
    // them, and then looks at the others.
    bool sleeps = wait && !reads_open();
    if (reads_open()) reap_reads(wait);
    for (auto& [version, part] : parts_) {
      if (part.in_flight() > 0) reap_writes(part, std::exchange(sleeps, false));
    }
    give_up_failed();
  }

 private:
  struct Reading {
    FileOf segment;  // run 0: of the version itself
    std::unique_ptr<tier::Reader> reader;
    std::uint64_t next_tag = 0;
    std::unordered_map<std::uint64_t, ChunkRead> reads;  // by tag
    std::vector<ChunkRead> arrived;                      // not posted yet (post_arrived)
  };

  unsigned writes_in_flight() const {
    unsigned sum = 0;
    for (const auto& [version, part] : parts_) sum += part.in_flight();
    return sum;
  }
  unsigned reads_in_flight() const { return reading_ ? reading_->reader->in_flight() : 0; }
  bool reads_open() const {
    return reading_ && (reading_->reader->in_flight() > 0 || !reading_->arrived.empty());
  }

  // --- scan and removal ---------------------------------------------------------------------
  void handle(ScanJob& command) {
    if (!tier_.ok()) return post_event_(Scanned{tier_.error()});
    post_event_(Scanned{scan_for_agent(**tier_, job_, command.clean)});
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
        tier_.ok() ? scan(**tier_, job_) : Result<std::vector<StoredVersion>>(tier_.error());
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

  // True if there was one.
  bool remove(const std::vector<VersionNumber>& versions) {
    Removed removed;
    std::set<VersionNumber> needed = in_use_needs_;  // by versions that stay
    for (const auto& [version, needs] : sealed_needs_) needed.insert(needs.begin(), needs.end());
    for (const VersionNumber version : versions) {
      const bool gone = version != in_use_ && !needed.contains(version) && remove_one(version);
      (gone ? removed.versions : removed.stayed).push_back(version);
      if (!gone) add_needs_of(version, needed);
    }
    const bool any = !removed.versions.empty();
    if (!versions.empty()) post_event_(std::move(removed));
    return any;
  }

  void add_needs_of(VersionNumber version, std::set<VersionNumber>& needed) {
    if (!tier_.ok()) return;
    const StoredVersion stays = look_at(**tier_, job_, version);
    for (const format::Need& need : needs_there(**tier_, job_, stays)) needed.insert(need.version);
  }

  bool remove_one(VersionNumber version) {
    const Status status = tier_.ok() ? (*tier_)->remove(format::version_folder(job_, version))
                                     : Status(tier_.error());
    if (!status.ok()) {
      spdlog::warn("cannot remove an expired version job={} version={} error=\"{}\"", job_, version,
                   status.error().to_string());
      return false;
    }
    unrecorded_.erase(version);
    recorded_early_.erase(version);
    sealed_needs_.erase(version);
    return true;
  }

  void handle(SetAside& command) {
    spdlog::warn("set aside job={} version={} why=\"{}\"", job_, command.version, command.why);
    const Status status =
        tier_.ok() ? set_aside(**tier_, job_, command.version, command.why) : Status(tier_.error());
    if (!status.ok()) spdlog::warn("cannot write the mark: {}", status.error().to_string());
  }

  // --- writing ------------------------------------------------------------------------------
  void handle(OpenVersion& command) {
    const VersionNumber version = command.info.version;
    const auto [at, fresh] = parts_.try_emplace(version, job_, command.info);
    BACKSTAY_CHECK(fresh);
    Status opened = open(at->second, command.bytes);
    if (!opened.ok() && opened.error().code() == Code::no_space && make_room(command.reclaim)) {
      opened = open(at->second, command.bytes);
    }
    if (opened.ok()) return;
    at->second.fail(opened.error());
    give_up(version);
  }

  Status open(PartWriter& part, std::uint64_t bytes) {
    return tier_.ok() ? part.open(**tier_, bytes) : Status(tier_.error());
  }

  // Open, and without an error; else null.
  PartWriter* part_of(VersionNumber version) {
    const auto found = parts_.find(version);
    return found == parts_.end() || found->second.error() ? nullptr : &found->second;
  }

  void handle(WriteChunk& command) {
    PartWriter* part = part_of(command.version);
    while (part != nullptr && part->full()) {
      reap_writes(*part, true);
      part = part_of(command.version);
    }
    if (part != nullptr) return part->write(command);
    post_event_(ChunkWritten{command.version, command.buffer, 0});
    give_up_failed();
  }

  void handle(SealVersion& command) {
    const auto found = parts_.find(command.version);
    if (found == parts_.end()) return;
    PartWriter& part = found->second;
    while (part.in_flight() > 0) reap_writes(part, true);
    if (!part.error()) {
      auto event = part.finish(**tier_, command);
      if (event.ok()) return sealed(std::move(*event));
      part.fail(event.error());
    }
    give_up(command.version);
  }

  void sealed(VersionSealed event) {
    const format::CommitRecord& record = event.stored.record;
    parts_.erase(record.version);
    if (record.nodes == 1) unrecorded_[record.version] = record;
    for (const FileOf& one : event.needs) sealed_needs_[record.version].insert(one.version);
    post_event_(std::move(event));
  }

  void handle(RecordVersion& command) {
    format::CommitRecord& record = command.record;
    sealed_needs_.erase(record.version);
    if (const Status here = has_part(command); !here.ok()) {
      if (here.error().code() != Code::not_found) return record_failed(record, here.error());
      const Error why(Code::not_found, "no part of it is here any more");
      return post_event_(RecordFailed{record.version, record.level, why});
    }
    if (const auto early = recorded_early_.extract(record.version); !early.empty()) {
      return post_event_(
          VersionRecorded{StoredVersion{record.version, Level::local, early.mapped()}});
    }
    record.committed_ns = system_clock().wall_ns();
    if (const Status done = put_record(record); !done.ok()) {
      return record_failed(record, done.error());
    }
    unrecorded_.erase(record.version);
    post_event_(VersionRecorded{StoredVersion{record.version, record.level, record}});
  }

  Status has_part(const RecordVersion& command) {
    if (!tier_.ok()) return tier_.error();
    if (unrecorded_.contains(command.record.version)) return {};
    const std::string folder = format::version_folder(job_, command.record.version);
    if (command.part || command.record.nodes == 1) {
      const auto manifest = (*tier_)->open(format::manifest_name(folder, command.part.value_or(0)));
      return manifest.ok() ? Status() : Status(manifest.error());
    }
    BACKSTAY_ASSIGN(const std::vector<std::string> names, (*tier_)->list(folder));
    const bool any = std::ranges::any_of(
        names, [](const std::string& name) { return format::node_of_manifest(name).has_value(); });
    return any ? Status() : Status(Error(Code::not_found, folder));
  }

  // Versions of one node take the place of those to be removed. Their order to be recorded may
  // still be waiting behind this one, and no other node has a say in it.
  bool make_room(const Reclaim& reclaim) {
    for (const auto& [version, record] : std::exchange(unrecorded_, {})) {
      format::CommitRecord now = record;
      now.level = Level::local;
      now.committed_ns = system_clock().wall_ns();
      const bool done = put_record(now).ok();
      (done ? recorded_early_[version] : unrecorded_[version]) = done ? now : record;
    }
    const bool all = std::ranges::all_of(reclaim.once_recorded, [this](VersionNumber version) {
      return look_at(**tier_, job_, version).level != Level::none;
    });
    return remove(all ? reclaim.later : reclaim.versions);
  }

  Status put_record(const format::CommitRecord& record) {
    const std::string folder = format::version_folder(job_, record.version);
    BACKSTAY_TRY((*tier_)->put(format::commit_name(folder, record.level), format::encode(record)));
    failpoint("commit.4");
    BACKSTAY_TRY((*tier_)->sync(job_));
    failpoint("commit.5");
    return {};
  }

  // In a run of one node no other node can have the record: the version is given up as if its data
  // could not be written.
  void record_failed(const format::CommitRecord& record, const Error& why) {
    if (record.nodes > 1) return post_event_(RecordFailed{record.version, record.level, why});
    spdlog::error("version could not be written job={} version={} error=\"{}\"", job_,
                  record.version, why.to_string());
    const std::string folder = format::version_folder(job_, record.version);
    if (const Status status = (*tier_)->remove(folder); !status.ok()) {
      spdlog::warn("cannot remove {}: {}", folder, status.error().to_string());
    }
    unrecorded_.erase(record.version);
    post_event_(VersionFailed{record.version, why});
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
    if (const Status status = (*tier_)->remove(folder); !status.ok()) {
      spdlog::warn("cannot remove {}: {}", folder, status.error().to_string());
    }
  }

  // After its first error the rest of a version's chunks is not written any more.
  void give_up_failed() {
    for (auto at = parts_.begin(); at != parts_.end();) {
      const auto& [version, part] = *at++;
      if (part.error()) give_up(version);
    }
  }

  void give_up(VersionNumber version) {
    PartWriter& part = parts_.at(version);
    while (part.in_flight() > 0) reap_writes(part, true);
    const VersionFailed event{version, *part.error()};
    spdlog::error("version could not be written job={} version={} error=\"{}\"", job_,
                  event.version, event.error.to_string());
    part.close();
    remove_rest(part);
    parts_.erase(version);
    post_event_(event);
  }

  void remove_rest(const PartWriter& part) {
    if (!tier_.ok()) return;
    if (const Status status = remove_part(part.folder(), part.info()); !status.ok()) {
      spdlog::warn("cannot remove {}: {}", part.folder(), status.error().to_string());
    }
  }

  // It is tried again. Copies of other nodes' parts may lie there already, and their owners count
  // on them.
  Status remove_part(const std::string& folder, const VersionInfo& part) {
    if (part.nodes == 1) return (*tier_)->remove(folder);
    BACKSTAY_TRY((*tier_)->remove(format::manifest_name(folder, part.node)));
    BACKSTAY_TRY((*tier_)->remove(format::segment_name(folder, part.node)));
    return (*tier_)->remove_if_empty(folder);
  }

  // --- reading ------------------------------------------------------------------------------
  void handle(LoadManifest& command) {
    const VersionNumber version = command.record.version;
    ManifestLoaded event{version, Error(Code::again, "the version was removed meanwhile")};
    if (!tier_.ok()) {
      event.manifest = tier_.error();
    } else {
      in_use_ = version;
      auto manifest = read_manifest(**tier_, job_, command.record, command.node);
      if (manifest.ok()) {
        for (const format::Need& need : manifest->needs) in_use_needs_.insert(need.version);
      }
      if (manifest.ok() || !is_gone(version)) event.manifest = std::move(manifest);
    }
    post_event_(std::move(event));
  }

  // A tool, or another node's agent, has removed it: no damage.
  bool is_gone(VersionNumber version) {
    StoredVersion now = look_at(**tier_, job_, version);
    return now.level == Level::none && now.damage.empty() && !find_in_doubt(**tier_, job_, now);
  }

  void handle(ReadChunk& command) {
    ChunkRead event{command.version, command.buffer, command.ticket, {}, command.chunk.length};
    const FileOf segment = command.older.value_or(FileOf{command.version, 0, command.node});
    if (!reading_ || reading_->segment != segment) {
      if (const Status status = open_segment(segment); !status.ok()) {
        event.status = status;
        return post_event_(std::move(event));
      }
    }
    if (reads_in_flight() >= reading_->reader->depth()) {
      post_arrived();
      collect_reads(true);
    }
    const std::uint64_t tag = reading_->next_tag++;
    reading_->reads.emplace(tag, std::move(event));
    reading_->reader->read(command.chunk.segment_offset,
                           command.memory.first(format::slot_bytes(command.chunk.length)), tag);
  }

  Status open_segment(const FileOf& segment) {
    finish_reads();
    if (!tier_.ok()) return tier_.error();
    BACKSTAY_ASSIGN(auto reader, segment.run == 0 ? (*tier_)->open(names_of(job_, segment).data)
                                                  : open_needed(**tier_, job_, segment));
    reading_ = Reading{};
    reading_->segment = segment;
    reading_->reader = std::move(reader);
    return {};
  }

  void handle(DoneReading&) {
    finish_reads();
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
  void reap_writes(PartWriter& part, bool wait) {
    for (const ChunkWritten& written : part.reap(wait)) post_event_(written);
  }

  // What arrived is posted when there is nothing left to hand to the disk, or before sleeping.
  // Posting wakes the thread that serves the ranks, and then the ranks; on a node with few cores
  // they run before us, and the disk must not stand idle meanwhile.
  void reap_reads(bool wait) {
    collect_reads(wait && reading_->arrived.empty());
    if (wait) post_arrived();
  }

  void collect_reads(bool wait) {
    for (const tier::Done& done : reading_->reader->reap(wait)) {
      auto node = reading_->reads.extract(done.tag);
      BACKSTAY_CHECK(!node.empty());
      node.mapped().status = done.status;
      reading_->arrived.push_back(std::move(node.mapped()));
    }
  }

  void post_arrived() {
    for (ChunkRead& event : reading_->arrived) post_event_(std::move(event));
    reading_->arrived.clear();
  }

  void finish_reads() {
    while (reads_open()) reap_reads(true);
    reading_.reset();
  }

  const std::string job_;
  Result<std::unique_ptr<tier::Tier>> tier_;
  PostEvent post_event_;
  AppendLine append_event_;
  // Of versions of one node that wait for their order to be recorded.
  std::map<VersionNumber, format::CommitRecord> unrecorded_;
  // Of those that were recorded to make room, before that order came.
  std::map<VersionNumber, format::CommitRecord> recorded_early_;
  std::map<VersionNumber, PartWriter> parts_;  // that are written
  // Of sealed ones without an order to record: what may go was chosen before they were known.
  std::map<VersionNumber, std::set<VersionNumber>> sealed_needs_;
  std::optional<Reading> reading_;
  VersionNumber in_use_ = 0;  // a restart has its manifest; 0: none
  std::set<VersionNumber> in_use_needs_;
};

StoreWorker::StoreWorker(std::string job, const MakeTier& make_tier, PostEvent post_event,
                         AppendLine append_event)
    : impl_(std::make_unique<Impl>(std::move(job), make_tier, std::move(post_event),
                                   std::move(append_event))) {}

StoreWorker::~StoreWorker() = default;

void StoreWorker::handle(Command command) { impl_->handle(command); }

bool StoreWorker::has_tier() const { return impl_->has_tier(); }

bool StoreWorker::busy() const { return impl_->busy(); }

void StoreWorker::reap(bool wait) { impl_->reap(wait); }

}  // namespace backstay::agent
