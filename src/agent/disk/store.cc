#include "agent/disk/store.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/aligned_memory.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

// The segment header in a block that O_DIRECT accepts.
AlignedMemory header_block(const VersionInfo& info, const std::string& job, std::uint64_t now_ns) {
  const Buffer bytes =
      format::encode(format::SegmentHeader{job, info.node, info.version, info.run, now_ns});
  AlignedMemory block(bytes.size());
  BACKSTAY_CHECK(block.span().size() == format::segment_header_bytes);
  std::memcpy(block.span().data(), bytes.data(), bytes.size());
  return block;
}

constexpr std::uint64_t header_tag = UINT64_MAX;

}  // namespace

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
    // Writing and reading together is rare (a restart while an old version drains): then nobody
    // sleeps on one while the other has news.
    const bool both = writes_in_flight() > 0 && reads_open();
    if (reads_open()) reap_reads(wait);
    if (writes_in_flight() > 0) reap_writes(wait && !both);
    if (writing_ && writing_->error) give_up();
  }

 private:
  struct Writing {
    VersionInfo info;
    std::string folder;
    std::optional<AlignedMemory> header;
    std::unique_ptr<tier::Writer> writer;  // ends first: its requests may still read the header
    std::uint64_t next_offset = format::segment_header_bytes;
    std::uint64_t next_tag = 0;
    std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> buffers;  // by tag
    std::vector<format::ChunkEntry> chunks;
    std::optional<Error> error;  // the first one
  };
  struct Reading {
    VersionNumber version = 0;
    NodeId node = 0;
    std::unique_ptr<tier::Reader> reader;
    std::uint64_t next_tag = 0;
    std::unordered_map<std::uint64_t, ChunkRead> reads;  // by tag
    std::vector<ChunkRead> arrived;                      // not posted yet (post_arrived)
  };

  unsigned writes_in_flight() const {
    return writing_ && writing_->writer ? writing_->writer->in_flight() : 0;
  }
  unsigned reads_in_flight() const { return reading_ ? reading_->reader->in_flight() : 0; }
  bool reads_open() const {
    return reading_ && (reading_->reader->in_flight() > 0 || !reading_->arrived.empty());
  }

  // --- scan and removal ---------------------------------------------------------------------
  void handle(ScanJob& command) {
    post_event_(Scanned{scan_job(command.clean)});
    if (!tier_.ok() || !command.clean) return;
    // Programs need not wait for this: the first version does, if it comes that soon.
    if (const Status ready = (*tier_)->prepare(); !ready.ok()) {
      spdlog::warn("the tier is not ready: {}", ready.error().to_string());
    }
  }

  Result<std::vector<StoredVersion>> scan_job(bool clean) {
    if (!tier_.ok()) return tier_.error();
    std::vector<std::string> ignored;
    BACKSTAY_ASSIGN(std::vector<StoredVersion> found, scan(**tier_, job_, &ignored));
    for (const std::string& name : ignored) {
      spdlog::warn(
          "not a version of ours, ignored job={} folder={} (remove it, or give it another name)",
          job_, name);
    }
    // The number of an unfinished version is not used again, but a folder that just has a large
    // number must not use up those that are left.
    const VersionNumber counted = counted_to(found);
    std::erase_if(found, [&](StoredVersion& stored) {
      const bool garbage = stored.level == Level::none && stored.damage.empty() &&
                           !find_in_doubt(**tier_, job_, stored);
      if (garbage && clean) remove_garbage(stored.version);
      return garbage && stored.version > counted;
    });
    return found;
  }

  // People remove a job's folder to begin anew, and purgers what is old.
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

  void remove_garbage(VersionNumber version) {
    spdlog::info("remove the rest of an unfinished version job={} version={}", job_, version);
    const Status status = (*tier_)->remove(format::version_folder(job_, version));
    if (!status.ok()) spdlog::warn("cannot remove it: {}", status.error().to_string());
  }

  void handle(RemoveVersions& command) { (void)remove(command.versions); }

  // True if there was one.
  bool remove(const std::vector<VersionNumber>& versions) {
    Removed removed;
    for (const VersionNumber version : versions) {
      const bool gone = version != in_use_ && remove_one(version);
      (gone ? removed.versions : removed.stayed).push_back(version);
    }
    const bool any = !removed.versions.empty();
    if (!versions.empty()) post_event_(std::move(removed));
    return any;
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
    BACKSTAY_CHECK(!writing_);
    writing_ = Writing{};
    writing_->info = command.info;
    writing_->folder = format::version_folder(job_, command.info.version);
    if (!tier_.ok()) return fail(tier_.error());
    auto writer = create_segment(command);
    if (!writer.ok() && writer.error().code() == Code::no_space && make_room(command.reclaim)) {
      writer = create_segment(command);
    }
    if (!writer.ok()) return fail(writer.error());
    writing_->writer = std::move(*writer);
    writing_->header = header_block(command.info, job_, system_clock().wall_ns());
    writing_->writer->write(0, writing_->header->span(), header_tag);
  }

  Result<std::unique_ptr<tier::Writer>> create_segment(const OpenVersion& command) {
    return (*tier_)->create(format::segment_name(writing_->folder, command.info.node),
                            command.bytes + format::segment_header_bytes);
  }

  void handle(WriteChunk& command) {
    if (!writing_ || writing_->info.version != command.version || writing_->error) {
      return post_event_(ChunkWritten{command.version, command.buffer, 0});
    }
    while (writes_in_flight() >= writing_->writer->depth()) reap_writes(true);
    const std::uint64_t slot = format::slot_bytes(command.length);
    BACKSTAY_CHECK(slot <= command.memory.size());
    std::memset(command.memory.data() + command.length, 0, slot - command.length);
    const std::uint64_t tag = writing_->next_tag++;
    writing_->buffers[tag] = {command.buffer, command.length};
    writing_->chunks.push_back({command.rank, command.length, command.object_offset,
                                writing_->next_offset, command.checksum});
    writing_->writer->write(writing_->next_offset, command.memory.first(slot), tag);
    writing_->next_offset += slot;
  }

  void handle(SealVersion& command) {
    if (!writing_ || writing_->info.version != command.version) return;
    while (writes_in_flight() > 0) reap_writes(true);
    if (!writing_->error) {
      if (auto record = seal(command); !record.ok()) {
        writing_->error = record.error();
      } else {
        VersionSealed event{as_sealed(*record), writing_->info.node, writing_->next_offset, {}};
        for (const auto& [rank, bytes] : command.object_bytes) event.ranks.push_back(rank);
        if (record->nodes == 1) unrecorded_[command.version] = *record;
        writing_.reset();
        return post_event_(std::move(event));
      }
    }
    give_up();
  }

  // What its record will say.
  Result<format::CommitRecord> seal(const SealVersion& command) {
    failpoint("commit.1");
    BACKSTAY_TRY(writing_->writer->seal(writing_->next_offset));
    failpoint("commit.2");
    BACKSTAY_ASSIGN(const format::Manifest manifest, make_manifest(command));
    const Buffer encoded = format::encode(manifest);
    BACKSTAY_TRY((*tier_)->put(format::manifest_name(writing_->folder, manifest.node), encoded));
    failpoint("commit.3");
    return format::record_of(manifest, encoded);
  }

  static StoredVersion as_sealed(const format::CommitRecord& record) {
    StoredVersion stored;
    stored.version = record.version;
    stored.record = record;
    stored.in_doubt = record.nodes > 1;
    return stored;
  }

  void handle(RecordVersion& command) {
    format::CommitRecord& record = command.record;
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

  // Of one node, nobody else can have the record: the version is given up as where its data could
  // not be written.
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

  Result<format::Manifest> make_manifest(const SealVersion& command) {
    format::Manifest manifest;
    manifest.job = job_;
    manifest.node = writing_->info.node;
    manifest.version = command.version;
    manifest.run = writing_->info.run;
    manifest.segment_bytes = writing_->next_offset;
    manifest.nodes = writing_->info.nodes;
    manifest.ranks = writing_->info.ranks;
    manifest.chunk_bytes_max = writing_->info.chunk_bytes_max;
    manifest.captured_ns = command.captured_ns;
    manifest.chunks = std::move(writing_->chunks);
    BACKSTAY_TRY(format::build_index(manifest, command.object_bytes));
    return manifest;
  }

  void handle(AbortVersion& command) {
    if (writing_ && writing_->info.version == command.version) {
      while (writes_in_flight() > 0) reap_writes(true);
      writing_.reset();
    }
    if (!tier_.ok()) return;
    const std::string folder = format::version_folder(job_, command.version);
    const auto manifest = (*tier_)->open(format::manifest_name(folder, command.node));
    if (manifest.ok() || manifest.error().code() != Code::not_found) return;  // it may be prepared
    if (const Status status = (*tier_)->remove(folder); !status.ok()) {
      spdlog::warn("cannot remove {}: {}", folder, status.error().to_string());
    }
  }

  // The first error of a version: the rest of its chunks are not written any more.
  void fail(const Error& error) {
    writing_->error = error;
    give_up();
  }

  void give_up() {
    while (writes_in_flight() > 0) reap_writes(true);
    const VersionFailed event{writing_->info.version, *writing_->error};
    spdlog::error("version could not be written job={} version={} error=\"{}\"", job_,
                  event.version, event.error.to_string());
    remove_rest();
    writing_.reset();
    post_event_(event);
  }

  void remove_rest() {
    writing_->writer.reset();
    if (!tier_.ok()) return;
    if (const Status status = remove_part(writing_->folder, writing_->info); !status.ok()) {
      spdlog::warn("cannot remove {}: {}", writing_->folder, status.error().to_string());
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
    if (!reading_ || reading_->version != command.version || reading_->node != command.node) {
      if (const Status status = open_segment(command); !status.ok()) {
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

  Status open_segment(const ReadChunk& command) {
    finish_reads();
    if (!tier_.ok()) return tier_.error();
    BACKSTAY_ASSIGN(auto reader, (*tier_)->open(format::segment_name(
                                     format::version_folder(job_, command.version), command.node)));
    reading_ = Reading{};
    reading_->version = command.version;
    reading_->node = command.node;
    reading_->reader = std::move(reader);
    return {};
  }

  void handle(DoneReading&) {
    finish_reads();
    in_use_ = 0;
  }

  void handle(Settle& command) {
    while (busy()) reap(/*wait=*/true);
    post_event_(Settled{command.ticket});
  }

  void handle(AppendEvent& command) {
    if (append_event_) append_event_(command.line);
  }

  // --- completions --------------------------------------------------------------------------
  void reap_writes(bool wait) {
    for (const tier::Done& done : writing_->writer->reap(wait)) {
      if (!done.status.ok() && !writing_->error) writing_->error = done.status.error();
      if (done.tag == header_tag) continue;
      const auto [buffer, length] = writing_->buffers.at(done.tag);
      writing_->buffers.erase(done.tag);
      post_event_(ChunkWritten{writing_->info.version, buffer, done.status.ok() ? length : 0});
    }
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
  std::optional<Writing> writing_;
  std::optional<Reading> reading_;
  VersionNumber in_use_ = 0;  // a restart has its manifest; 0: none
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
