#include "agent/checkpoint/version_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/checkpoint/older.h"
#include "agent/disk/links.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/segment.h"

namespace backstay::agent {

MemoryVersion& VersionOutput::begin(VersionNumber number) {
  state_.newest = number;
  state_.record("capture_begin", {{"version", number}});
  MemoryVersion& version = state_.memory[number];
  version.info = {number,       state_.run,   state_.node,
                  state_.nodes, state_.ranks, state_.pool.buffer_bytes()};
  return version;
}

void VersionOutput::open(const MemoryVersion& version, std::uint64_t bytes,
                         std::uint64_t hoped_bytes) {
  state_.store.post(OpenVersion{version.info, bytes, reclaimable(), hoped_bytes});
}

// What was ordered to be recorded, and versions of one node that are on their way to the disk, have
// their record before the next one is opened there.
Reclaim VersionOutput::reclaimable() const {
  std::vector<VersionNumber> soon;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.recording > 0 && row.disk->level == Level::none) soon.push_back(number);
  }
  for (const auto& [number, version] : state_.memory) {
    const bool on_its_way = version.captured && !version.failed && !version.dropping;
    const bool counted = std::ranges::find(soon, number) != soon.end();
    if (on_its_way && !counted && version.info.nodes == 1 && !state_.is_local(version)) {
      soon.push_back(number);
    }
  }
  return agent::reclaimable(state_.versions, state_.keep, std::move(soon));
}

void VersionOutput::take_in(MemoryVersion& version, const format::ObjectId& object,
                            const wire::ChunkInPool& chunk) {
  version.chunks.push_back({.object = object, .in_pool = chunk});
  if (!version.failed) send_to_store(version, version.chunks.back());
}

void VersionOutput::send_to_store(MemoryVersion& version, HeldChunk& chunk) {
  chunk.in_store = true;
  if (version.handed_ns == 0) version.handed_ns = state_.clock.wall_ns();
  version.writing[chunk.in_pool.buffer] = static_cast<std::size_t>(&chunk - version.chunks.data());
  chunk.written = false;
  const auto memory = state_.pool.buffer(chunk.in_pool.buffer);
  state_.store.post(WriteChunk{version.info.version, chunk.object, chunk.in_pool.buffer,
                               memory.first(format::slot_bytes(chunk.in_pool.length)),
                               chunk.in_pool.length, chunk.in_pool.object_offset,
                               chunk.in_pool.checksum});
}

void VersionOutput::seal(const MemoryVersion& version) {
  SealVersion seal{
      version.info.version, version.captured_ns, {}, older_chunks(version.older), version.may_need};
  seal.object_bytes.assign(version.object_bytes.begin(), version.object_bytes.end());
  state_.store.post(std::move(seal));
}

void VersionOutput::record_captured(const MemoryVersion& version) const {
  nlohmann::json ranks = nlohmann::json::array();
  nlohmann::json writers = nlohmann::json::array();
  std::uint64_t first_ns = version.captured_ns;
  for (const auto& [object, bytes] : version.object_bytes) {
    const ObjectCapture& capture = version.captures.at(object);
    first_ns = std::min(first_ns, capture.begin_ns);
    const bool of_rank = object.owner == format::OwnerKind::rank;
    nlohmann::json& one = (of_rank ? ranks : writers).emplace_back();
    one = {{of_rank ? "rank" : "writer", object.number},
           {"bytes", bytes},
           {"begin_ns", capture.begin_ns},
           {"end_ns", capture.end_ns}};
    if (capture.stopped_ns == 0) continue;
    one["stopped_ns"] = capture.stopped_ns;
    one["by"] = capture.snapshot ? "fork" : "copy";
  }
  nlohmann::json fields{{"version", version.info.version},
                        {"bytes", version.bytes()},
                        {"chunks", version.chunks.size()},
                        {"seconds", 1e-9 * static_cast<double>(version.captured_ns - first_ns)},
                        {"ranks", std::move(ranks)}};
  if (!writers.empty()) fields["writers"] = std::move(writers);
  state_.record("captured", std::move(fields));
}

// `why` may be the version's own, so the version goes last.
void VersionOutput::give_up(VersionNumber number, const Error& why) {
  spdlog::warn("version given up job={} version={} why=\"{}\"", state_.name, number, why.message());
  state_.record("capture_failed",
                {{"version", number}, {"code", code_name(why.code())}, {"why", why.message()}});
  state_.versions.changed(number);
  const auto found = state_.memory.find(number);
  if (found == state_.memory.end()) return;
  for (const HeldChunk& chunk : found->second.chunks) {
    if (chunk.in_store) {
      orphans_.emplace(number, chunk.in_pool.buffer);
    } else if (!chunk.released) {
      state_.pool.give_back(chunk.in_pool.buffer);
    }
  }
  state_.store.post(AbortVersion{number, found->second.info.node});
  state_.memory.erase(found);
}

// --- events of the store -------------------------------------------------------------------------

void VersionOutput::on(const ChunkWritten& event) {
  const auto orphan = orphans_.equal_range(event.version);
  for (auto at = orphan.first; at != orphan.second; ++at) {
    if (at->second != event.buffer) continue;
    state_.pool.give_back(event.buffer);
    orphans_.erase(at);
    return;
  }
  MemoryVersion* version = state_.in_memory(event.version);
  BACKSTAY_CHECK(version != nullptr);
  const auto at = version->writing.find(event.buffer);
  BACKSTAY_CHECK(at != version->writing.end());
  HeldChunk& chunk = version->chunks[at->second];
  version->writing.erase(at);
  chunk.in_store = false;
  chunk.written = event.bytes != 0;
  version->written_bytes += event.bytes;
  if (version->retries && version->writing.empty()) write_again(*version);
  if (version->dropping) state_.release(event.version);
}

bool VersionOutput::on(const VersionFailed& event) {
  state_.versions.write_failed(event.version);
  MemoryVersion* version = state_.in_memory(event.version);
  if (version == nullptr) return false;
  version->failed = event.error;
  version->part.reset();  // the next try makes another one
  state_.versions.not_written(event);
  state_.record("write_failed", {{"version", event.version},
                                 {"code", code_name(event.error.code())},
                                 {"why", event.error.message()}});
  return true;
}

// Where other nodes took long, its buffers may have gone to newer versions: the record says what
// they held.
void VersionOutput::local(const StoredVersion& stored) const {
  const format::CommitRecord& record = stored.record;
  const std::uint64_t now = state_.clock.wall_ns();
  nlohmann::json fields{{"version", stored.version}, {"bytes", record.payload_bytes}};
  if (MemoryVersion* version = state_.in_memory(stored.version)) {
    version->local_ns = now;
    version->base.release();
    fields["write_seconds"] = version->write_seconds(now);
  } else if (record.run != state_.run) {
    return;  // that run has ended: the time to local is unknown
  }
  const double seconds = 1e-9 * static_cast<double>(now - std::min(now, record.captured_ns));
  spdlog::info("version is local job={} version={} bytes={} seconds_after_capture={:.3f}",
               state_.name, stored.version, record.payload_bytes, seconds);
  fields["seconds"] = seconds;
  state_.record("local", std::move(fields));
}

// --- what the pool holds -------------------------------------------------------------------------

void VersionOutput::retry_failed() {
  for (auto& [number, version] : state_.memory) {
    if (!version.failed || !version.captured || !version.whole) continue;
    version.retries = !version.writing.empty();
    if (!version.retries) write_again(version);
  }
}

void VersionOutput::write_again(MemoryVersion& version) {
  version.retries = false;
  if (version.dropping || !version.whole) return;
  spdlog::info("try again to write version job={} version={}", state_.name, version.info.version);
  Reclaim room = reclaimable();  // it takes no place yet
  version.failed.reset();
  version.written_bytes = 0;
  version.handed_ns = 0;
  state_.store.post(OpenVersion{version.info, version.bytes(), std::move(room)});
  for (HeldChunk& chunk : version.chunks) send_to_store(version, chunk);
  seal(version);
}

bool VersionOutput::store_has_buffers() const {
  if (!orphans_.empty()) return true;
  for (const auto& [number, version] : state_.memory) {
    if (!version.writing.empty()) return true;
    // Sealing: its buffers come free when it is local.
    if (version.captured && !state_.is_safe(version) && !version.failed) return true;
  }
  return false;
}

const Error* VersionOutput::failure() const {
  const Error* last = nullptr;
  for (const auto& [number, version] : state_.memory) {
    if (version.failed) last = &*version.failed;
  }
  return last;
}

bool VersionOutput::draining() const {
  return std::ranges::any_of(state_.memory, [this](const auto& entry) {
    const MemoryVersion& version = entry.second;
    const bool on_its_way = !version.failed || version.retries;
    return version.captured && !state_.is_safe(version) && on_its_way && !version.dropping;
  });
}

}  // namespace backstay::agent
