#include "store/version_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "base/notice.h"
#include "format/names.h"
#include "format/segment.h"
#include "store/needed_files.h"
#include "store/needed_segment.h"

namespace backstay::store {

namespace {

constexpr unsigned slots_max = 4;  // chunks on their way at once: reading and writing overlap

std::uint64_t payload_of(const format::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& object : manifest.objects) bytes += object.bytes;
  return bytes;
}

// A folder of the destination may have been removed meanwhile: put() would make it again, without
// the segments.
Status check_names(tier::Tier& to, const format::CommitRecord& record, const std::string& folder) {
  BACKSTAY_ASSIGN(const std::vector<std::string> names, to.list(folder));
  const std::size_t prefix = folder.size() + 1;
  for (NodeId node = 0; node < record.nodes; ++node) {
    for (const std::string& name :
         {format::segment_name(folder, node), format::manifest_name(folder, node)}) {
      if (std::binary_search(names.begin(), names.end(), name.substr(prefix))) continue;
      const std::string hint =
          record.nodes > 1 ? "; is durable.dir the same directory on all nodes?" : "";
      return Error(Code::not_found, fmt::format("what was just written is gone: {}{}", name, hint));
    }
  }
  return {};
}

}  // namespace

Status check_run(const StoredVersion& there, const format::CommitRecord& record) {
  if (there.unreadable) return *there.unreadable;
  // How a run of several nodes wrote it is not known before all parts are copied.
  const bool known = record.manifests_sum != 0;
  const bool same = there.record.run == record.run &&
                    (!known || there.record.manifests_sum == record.manifests_sum);
  if (there.level == Level::none || same) return {};
  return Error(Code::busy, fmt::format("version {} of another run of job {} is there already",
                                       record.version, record.job));
}

Status make_safe(tier::Tier& to, const format::CommitRecord& record) {
  return to.sync(format::version_folder(record.job, record.version));
}

Result<bool> make_way(tier::Tier& to, const format::CommitRecord& record) {
  const StoredVersion there = look_at(to, record.job, record.version);
  BACKSTAY_TRY(check_run(there, record));
  if (there.good()) return true;
  BACKSTAY_TRY(to.remove(format::version_folder(record.job, record.version)));
  return false;
}

Status remove_unfinished(tier::Tier& to, const std::string& job, VersionNumber spared) {
  BACKSTAY_ASSIGN(const auto versions, scan(to, job));
  for (const StoredVersion& stored : versions) {
    if (stored.level != Level::none || !stored.damage.empty() || stored.version == spared) continue;
    notice(Weight::info, "remove the rest of an unfinished copy job={} version={}", job,
           stored.version);
    BACKSTAY_TRY(to.remove(format::version_folder(job, stored.version)));
  }
  return {};
}

VersionCopy::VersionCopy(tier::Tier& from, tier::Tier& to, const Clock& clock, What what)
    : from_(from),
      to_(to),
      clock_(clock),
      what_(std::move(what)),
      folder_(format::version_folder(what_.record.job, what_.record.version)),
      node_(what_.only.value_or(0)) {}

VersionCopy::~VersionCopy() = default;

Status VersionCopy::step() {
  if (!segment_) BACKSTAY_TRY(open_segment());
  if (part_) return {};  // it was there
  BACKSTAY_TRY(take_in());
  start_reads();
  const bool all_read = segment_->next_chunk == segment_->chunks.size();
  if (!all_read || segment_->in_flight()) return {};
  BACKSTAY_TRY(close_segment());
  if (part_) return {};
  return ++node_ == what_.record.nodes ? commit() : Status();
}

std::uint64_t VersionCopy::rests_until_ns() const {
  if (!segment_ || segment_->in_flight() || clock_.monotonic_ns() >= next_ns_) return 0;
  return next_ns_;
}

Status VersionCopy::remove_rest() {
  segment_.reset();
  if (what_.only) return {};
  return to_.remove(folder_);
}

// --- one segment ---------------------------------------------------------------------------------

Status VersionCopy::open_segment() {
  BACKSTAY_ASSIGN(format::Manifest manifest, load_manifest());
  if (what_.only) {
    BACKSTAY_ASSIGN(const bool there, is_there(manifest));
    if (there) return {};
  }
  BACKSTAY_TRY(check_needs(manifest));
  auto segment = std::make_unique<Segment>(from_, to_, std::move(manifest), what_.first);
  BACKSTAY_TRY(begin(*segment));
  segment_ = std::move(segment);
  return {};
}

VersionCopy::Segment::Segment(tier::Tier& from, tier::Tier& to, format::Manifest of_it,
                              PartReader::First first)
    : manifest(std::move(of_it)),
      reader({&from}, manifest, std::move(first)),
      writer(to, manifest.job, file_of(manifest), "copy") {
  for (const format::ChunkEntry& chunk : manifest.chunks) {
    if (chunk.here()) chunks.push_back(&chunk);
  }
  std::ranges::sort(chunks, {}, &format::ChunkEntry::segment_offset);
}

Status VersionCopy::begin(Segment& segment) {
  const format::Manifest& manifest = segment.manifest;
  BACKSTAY_TRY(from_source(segment.reader.open()));
  BACKSTAY_TRY(segment.writer.open(manifest.segment_bytes));
  // A new header: it says when this segment was made.
  segment.writer.write_header(
      {manifest.job, manifest.node, manifest.version, manifest.run, clock_.wall_ns()});
  const auto slots = std::min({slots_max, segment.reader.depth(), segment.writer.depth()});
  for (unsigned slot = 0; slot < slots; ++slot) {
    segment.slots.push_back({AlignedMemory(manifest.chunk_bytes_max)});
    segment.idle.push_back(slot);
  }
  return {};
}

// What is to be copied first may have been removed, or was never copied.
Status VersionCopy::check_needs(const format::Manifest& manifest) {
  for (const FileOf& file : needed_files(manifest)) {
    const auto there = open_needed(to_, manifest.job, file);
    if (there.ok()) continue;
    return Error(Code::state,
                 fmt::format("version {} cannot be copied: {} there; copy version {} first",
                             manifest.version, there.error().message(), file.version));
  }
  return {};
}

// Read a second time where it is wrong, as the trouble may pass.
Result<format::Manifest> VersionCopy::load_manifest() {
  auto manifest = read_manifest(from_, what_.record.job, what_.record, node_);
  if (!manifest.ok()) manifest = read_manifest(from_, what_.record.job, what_.record, node_);
  if (!manifest.ok()) return from_source(manifest.error()).error();
  return manifest;
}

// One file of several may be whole there, as another agent was interrupted at this version.
Result<bool> VersionCopy::is_there(const format::Manifest& manifest) {
  const Buffer ours = format::encode(manifest);
  const std::string name = format::manifest_name(folder_, node_);
  const auto theirs = to_.get(name, ours.size());
  if (!theirs.ok() || *theirs != ours) return false;
  if (!to_.open(format::segment_name(folder_, node_)).ok()) return false;
  // Its name may not be safe yet where that agent died.
  BACKSTAY_TRY(to_.put(name, ours));
  part_ = Part{payload_of(manifest), format::manifest_digest(ours), manifest.needs};
  return true;
}

void VersionCopy::start_reads() {
  while (!segment_->idle.empty() && segment_->next_chunk < segment_->chunks.size()) {
    const std::uint64_t now = clock_.monotonic_ns();
    if (what_.bytes_per_s != 0 && now < next_ns_) return;
    const std::size_t index = segment_->idle.back();
    segment_->idle.pop_back();
    Slot& slot = segment_->slots[index];
    slot.chunk = segment_->chunks[segment_->next_chunk++];
    segment_->reader.start(*slot.chunk, slot.memory.span(), index);
    if (what_.bytes_per_s == 0) continue;
    const double seconds =
        static_cast<double>(slot.chunk->length) / static_cast<double>(what_.bytes_per_s);
    next_ns_ = std::max(next_ns_, now) + static_cast<std::uint64_t>(seconds * 1e9);
  }
}

Status VersionCopy::take_in() {
  const bool reads = segment_->reader.in_flight() > 0;
  for (const tier::Done& done : segment_->reader.reap(/*wait=*/reads)) BACKSTAY_TRY(arrived(done));
  for (const tier::Done& done : segment_->writer.reap(/*wait=*/!reads)) {
    BACKSTAY_TRY(done.status);
    BACKSTAY_TRY(segment_->writer.header());
    segment_->idle.push_back(done.tag);
    bytes_ += segment_->slots[done.tag].chunk->length;
  }
  return {};
}

Status VersionCopy::arrived(const tier::Done& done) {
  BACKSTAY_TRY(from_source(done.status));
  const Slot& slot = segment_->slots[done.tag];
  const auto memory = slot.memory.span().first(format::slot_bytes(slot.chunk->length));
  std::memset(memory.data() + slot.chunk->length, 0, memory.size() - slot.chunk->length);
  segment_->writer.write(slot.chunk->segment_offset, memory, done.tag);
  return {};
}

Status VersionCopy::close_segment() {
  const format::Manifest& manifest = segment_->manifest;
  BACKSTAY_TRY(segment_->writer.seal(manifest.segment_bytes));
  const Buffer bytes = format::encode(manifest);
  const Part part{payload_of(manifest), format::manifest_digest(bytes), manifest.needs};
  digests_ += part.digest;
  BACKSTAY_TRY(segment_->writer.publish(bytes));
  segment_.reset();
  if (what_.only) part_ = part;
  return {};
}

// --- the version ---------------------------------------------------------------------------------

Status VersionCopy::commit() {
  if (digests_ != what_.record.manifests_sum) {
    return from_source(Error(Code::corrupt, "the manifests are not those that were committed"));
  }
  format::CommitRecord record = what_.record;
  record.level = what_.level;
  record.committed_ns = clock_.wall_ns();
  BACKSTAY_TRY(commit_copy(to_, record));
  committed_ = record;
  return {};
}

Status commit_copy(tier::Tier& to, const format::CommitRecord& record) {
  const std::string folder = format::version_folder(record.job, record.version);
  BACKSTAY_TRY(check_names(to, record, folder));
  BACKSTAY_TRY(to.put(format::commit_name(folder, record.level), format::encode(record)));
  failpoint("copy.4");
  BACKSTAY_TRY(to.sync(record.job));
  failpoint("copy.5");
  return {};
}

Status VersionCopy::from_source(Status status) {
  if (!status.ok() && is_damage_or_gone(status.error().code())) source_is_damaged_ = true;
  return status;
}

}  // namespace backstay::store
