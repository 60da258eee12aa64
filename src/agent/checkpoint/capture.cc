#include "agent/checkpoint/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

std::uint32_t buffers_for(std::uint64_t bytes, std::uint32_t buffer_bytes) {
  return static_cast<std::uint32_t>((bytes + buffer_bytes - 1) / buffer_bytes);
}

}  // namespace

MemoryVersion& Capture::filling_version() {
  MemoryVersion* version = state_.in_memory(filling_->version);
  BACKSTAY_CHECK(version != nullptr);
  return *version;
}

Status Capture::begin(const RankLink& link, const wire::Begin& begin) {
  if (!state_.lost.empty()) {
    state_.outbox.send(link.connection,
                       wire::Captured{begin.version, Code::rank_lost,
                                      "a rank of this run has died; restart the job"});
    return {};
  }
  if (!filling_ && begin.version == given_up_) return {};  // it knows why
  if (begin.version > format::version_max) {
    state_.outbox.send(link.connection, wire::Captured{begin.version, Code::too_large, used_up()});
    return {};
  }
  if (!filling_) BACKSTAY_TRY(start(begin));
  if (begin.version != filling_->version) {
    return Error(Code::state, fmt::format("rank {} begins version {} while version {} is taken",
                                          link.rank, begin.version, filling_->version));
  }
  const std::uint64_t buffers = (begin.object_bytes / state_.pool.buffer_bytes()) + 1;
  if (buffers > UINT32_MAX) return Error(Code::too_large, "the object is too large");
  const auto [at, fresh] = filling_->ranks.try_emplace(link.rank);
  if (!fresh) return Error(Code::state, "begin was sent twice for one version");
  at->second.object_bytes = begin.object_bytes;
  at->second.wanted = buffers_for(begin.object_bytes, state_.pool.buffer_bytes());
  filling_version().object_bytes[link.rank] = begin.object_bytes;
  filling_version().rank_ns[link.rank].first = state_.clock.wall_ns();
  state_.make_room_at_home(link, at->second.wanted);
  grant();
  return {};
}

std::string Capture::used_up() const {
  return fmt::format(
      "the numbers of versions end at {}, and job {} has a version {}: give the job "
      "another name, or remove that version with 'backstay rm' and restart the job",
      format::version_max, state_.name, state_.newest);
}

Status Capture::start(const wire::Begin& begin) {
  if (begin.version <= state_.newest) {
    return Error(Code::state, fmt::format("version {} is not newer than version {}, the newest of "
                                          "job {}",
                                          begin.version, state_.newest, state_.name));
  }
  failpoint("capture.begin");
  retry_failed();
  state_.newest = begin.version;
  state_.record("capture_begin", {{"version", begin.version}});
  filling_ = Filling{};
  filling_->version = begin.version;
  MemoryVersion& version = state_.memory[begin.version];
  version.info = {begin.version, state_.run,   state_.node,
                  state_.nodes,  state_.ranks, state_.pool.buffer_bytes()};
  // Ranks save about the same: a guess that costs nothing if it is wrong.
  state_.store.post(
      OpenVersion{version.info, begin.object_bytes * state_.local_ranks, reclaimable()});
  return {};
}

// What was ordered to be recorded, and versions of one node that are on their way to the disk, have
// their record before the next one is opened there.
Reclaim Capture::reclaimable() const {
  std::vector<VersionNumber> soon;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.recording && row.disk->level == Level::none) soon.push_back(number);
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

Status Capture::filled(const RankLink& link, const wire::Filled& filled) {
  if (!filling_ || filling_->version != filled.version) return {};  // given up meanwhile
  const auto at = filling_->ranks.find(link.rank);
  if (at == filling_->ranks.end()) return Error(Code::state, "filled before begin");
  RankProgress& progress = at->second;
  MemoryVersion& version = filling_version();
  for (const wire::ChunkInPool& chunk : filled.chunks) {
    const std::uint64_t expected = std::min<std::uint64_t>(
        state_.pool.buffer_bytes(), progress.object_bytes - progress.received_bytes);
    if (progress.granted.erase(chunk.buffer) == 0 || chunk.length == 0 ||
        chunk.length != expected || chunk.object_offset != progress.received_bytes) {
      return Error(Code::invalid, fmt::format("rank {} handed over a buffer that it does not own, "
                                              "that is not full, or out of order",
                                              link.rank));
    }
    progress.received_bytes += chunk.length;
    take_in(version, link, chunk);
  }
  return {};
}

void Capture::take_in(MemoryVersion& version, const RankLink& link,
                      const wire::ChunkInPool& chunk) {
  version.chunks.push_back({.rank = link.rank, .in_pool = chunk});
  if (!version.failed) send_to_store(version, version.chunks.back());
}

void Capture::send_to_store(MemoryVersion& version, HeldChunk& chunk) {
  chunk.in_store = true;
  if (version.handed_ns == 0) version.handed_ns = state_.clock.wall_ns();
  version.writing[chunk.in_pool.buffer] = static_cast<std::size_t>(&chunk - version.chunks.data());
  chunk.written = false;
  const auto memory = state_.pool.buffer(chunk.in_pool.buffer);
  state_.store.post(WriteChunk{version.info.version, chunk.rank, chunk.in_pool.buffer,
                               memory.first(format::slot_bytes(chunk.in_pool.length)),
                               chunk.in_pool.length, chunk.in_pool.object_offset,
                               chunk.in_pool.checksum});
}

Status Capture::end(const RankLink& link, const wire::End& end) {
  if (!filling_ || filling_->version != end.version) return {};  // given up meanwhile
  const auto at = filling_->ranks.find(link.rank);
  if (at == filling_->ranks.end() || at->second.ended) {
    return Error(Code::state, "end without begin");
  }
  if (at->second.received_bytes != at->second.object_bytes) {
    return Error(Code::invalid,
                 fmt::format("rank {} announced {} bytes and handed over {}", link.rank,
                             at->second.object_bytes, at->second.received_bytes));
  }
  for (const std::uint32_t buffer : at->second.granted) state_.pool.give_back(buffer);
  at->second.granted.clear();
  at->second.ended = true;
  filling_version().rank_ns[link.rank].second = state_.clock.wall_ns();
  failpoint("capture.end");
  const auto& ranks = filling_->ranks;
  if (ranks.size() == state_.local_ranks &&
      std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.second.ended; })) {
    all_ended();
  }
  return {};
}

void Capture::all_ended() {
  filling_->all_ended = true;
  MemoryVersion& version = filling_version();
  version.captured_ns = state_.clock.wall_ns();
  if (version.failed && !version.whole) return abort(*version.failed);
  if (!version.failed) seal(version);
  if (version.whole) captured();  // else once it is local
}

void Capture::seal(const MemoryVersion& version) {
  SealVersion seal{version.info.version, version.captured_ns, {}};
  seal.object_bytes.assign(version.object_bytes.begin(), version.object_bytes.end());
  state_.store.post(std::move(seal));
}

void Capture::captured() {
  MemoryVersion& version = filling_version();
  const VersionNumber number = filling_->version;
  version.captured = true;
  filling_.reset();
  failpoint("capture.captured");
  state_.send_to_all(wire::Captured{number, Code::ok, unreported_.take(state_)});
  record_captured(version);
  drop_superseded();
  state_.versions.changed(number);
}

void Capture::record_captured(const MemoryVersion& version) const {
  nlohmann::json ranks = nlohmann::json::array();
  std::uint64_t first_ns = UINT64_MAX;
  for (const auto& [rank, bytes] : version.object_bytes) {
    const auto [begin_ns, end_ns] = version.rank_ns.at(rank);
    first_ns = std::min(first_ns, begin_ns);
    ranks.push_back({{"rank", rank}, {"bytes", bytes}, {"begin_ns", begin_ns}, {"end_ns", end_ns}});
  }
  state_.record("captured",
                {{"version", version.info.version},
                 {"bytes", version.bytes()},
                 {"chunks", version.chunks.size()},
                 {"seconds", 1e-9 * static_cast<double>(version.captured_ns - first_ns)},
                 {"ranks", std::move(ranks)}});
}

void Capture::drop_superseded() {
  std::vector<VersionNumber> older;
  VersionNumber newest_captured = 0;
  for (const auto& [number, version] : state_.memory) {
    if (version.captured || state_.is_local(version)) newest_captured = number;
  }
  for (const auto& [number, version] : state_.memory) {
    const bool done = state_.is_safe(version) || version.failed;
    if (number < newest_captured && done) older.push_back(number);
  }
  for (const VersionNumber number : older) {
    const MemoryVersion& version = state_.memory.at(number);
    if (version.failed) state_.store.post(AbortVersion{number, version.info.node});
    state_.release(number);
    state_.versions.changed(number);
  }
}

void Capture::retry_failed() {
  for (auto& [number, version] : state_.memory) {
    if (!version.failed || !version.captured || !version.whole) continue;
    if (!version.writing.empty()) continue;  // the first try has not come back whole
    spdlog::info("try again to write version job={} version={}", state_.name, number);
    Reclaim room = reclaimable();  // it takes no place yet
    version.failed.reset();
    version.written_bytes = 0;
    version.handed_ns = 0;
    state_.store.post(OpenVersion{version.info, version.bytes(), std::move(room)});
    for (HeldChunk& chunk : version.chunks) send_to_store(version, chunk);
    seal(version);
  }
}

void Capture::rank_lost(Rank rank) {
  if (!filling_ || filling_->all_ended) return;
  abort(Error(Code::rank_lost,
              fmt::format("rank {} died while version {} was taken", rank, filling_->version)));
}

void Capture::abort(const Error& why) {
  if (!filling_) return;
  const VersionNumber number = filling_->version;
  given_up_ = number;
  spdlog::warn("version given up job={} version={} why=\"{}\"", state_.name, number, why.message());
  state_.record("capture_failed",
                {{"version", number}, {"code", code_name(why.code())}, {"why", why.message()}});
  MemoryVersion& version = filling_version();
  for (auto& [rank, progress] : filling_->ranks) {
    for (const std::uint32_t buffer : progress.granted) state_.pool.give_back(buffer);
  }
  for (HeldChunk& chunk : version.chunks) {
    if (chunk.in_store) {
      orphans_.emplace(number, chunk.in_pool.buffer);
      chunk.released = true;
    } else if (!chunk.released) {
      state_.pool.give_back(chunk.in_pool.buffer);
      chunk.released = true;
    }
  }
  state_.store.post(AbortVersion{number, version.info.node});
  state_.memory.erase(number);
  filling_.reset();
  state_.send_to_all(wire::Captured{number, why.code(), why.message()});
  state_.versions.changed(number);
}

// --- events of the store -----------------------------------------------------------------------

void Capture::on(const ChunkWritten& event) {
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
  if (version->dropping) state_.release(event.version);
}

void Capture::local(const StoredVersion& stored) {
  record_local(stored);
  failpoint("commit.6");
  if (filling_ && filling_->version == stored.version) captured();
  drop_superseded();
}

// Where other nodes took long, its buffers may have gone to newer versions: the record says what
// they held.
void Capture::record_local(const StoredVersion& stored) {
  const format::CommitRecord& record = stored.record;
  const std::uint64_t now = state_.clock.wall_ns();
  nlohmann::json fields{{"version", stored.version}, {"bytes", record.payload_bytes}};
  if (MemoryVersion* version = state_.in_memory(stored.version)) {
    version->local_ns = now;
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

void Capture::on(const VersionFailed& event) {
  state_.versions.write_failed(event.version);
  MemoryVersion* version = state_.in_memory(event.version);
  if (version == nullptr) return;  // given up meanwhile
  version->failed = event.error;
  if (!state_.write_failed) ++state_.write_outages;
  state_.write_failed = event;
  state_.record("write_failed", {{"version", event.version},
                                 {"code", code_name(event.error.code())},
                                 {"why", event.error.message()}});
  if (filling_ && filling_->version == event.version && !version->whole) {
    return abort(event.error);
  }
  state_.versions.changed(event.version);
  drop_superseded();
}

// --- buffers -----------------------------------------------------------------------------------

void Capture::grant() {
  if (!filling_) return;
  std::map<Rank, wire::Grant> grants;
  for (bool any = true; any;) {
    any = false;
    for (auto& [rank, progress] : filling_->ranks) {
      if (progress.wanted == 0) continue;
      const auto link = state_.links.find(rank);
      if (link == state_.links.end()) continue;
      const auto buffer = state_.take_buffer(link->second.home);
      if (!buffer) break;
      progress.granted.insert(*buffer);
      --progress.wanted;
      grants[rank].buffers.push_back(*buffer);
      any = true;
    }
  }
  for (auto& [rank, all] : grants) {
    for (std::size_t at = 0; at < all.buffers.size(); at += wire::list_entries_max) {
      const std::size_t end = std::min(all.buffers.size(), at + wire::list_entries_max);
      state_.outbox.send(state_.links.at(rank).connection,
                         wire::Grant{filling_->version,
                                     {all.buffers.begin() + static_cast<std::ptrdiff_t>(at),
                                      all.buffers.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
  }
  if (starved()) {
    Error why(Code::no_space, "the pool is full and nothing in it can be written to disk");
    for (const auto& [number, version] : state_.memory) {
      if (version.failed) why = *version.failed;
    }
    abort(why.context("the pool is full with data that cannot be written"));
  }
}

bool Capture::waits_for_buffers() const {
  return filling_ && std::any_of(filling_->ranks.begin(), filling_->ranks.end(),
                                 [](const auto& rank) { return rank.second.wanted > 0; });
}

bool Capture::store_has_buffers() const {
  if (!orphans_.empty()) return true;
  for (const auto& [number, version] : state_.memory) {
    if (!version.writing.empty()) return true;
    // Sealing: its buffers come free when it is local.
    if (version.captured && !state_.is_safe(version) && !version.failed) return true;
  }
  return false;
}

// No buffer will ever come back: waiting would not end.
bool Capture::starved() const {
  if (!waits_for_buffers() || store_has_buffers()) return false;
  const bool failed = std::any_of(state_.memory.begin(), state_.memory.end(),
                                  [](const auto& entry) { return entry.second.failed; });
  if (!failed) return false;  // another job of this node holds the pool for now
  return std::all_of(filling_->ranks.begin(), filling_->ranks.end(),
                     [](const auto& rank) { return rank.second.granted.empty(); });
}

bool Capture::draining() const {
  return std::any_of(state_.memory.begin(), state_.memory.end(), [this](const auto& entry) {
    const MemoryVersion& version = entry.second;
    return version.captured && !state_.is_safe(version) && !version.failed && !version.dropping;
  });
}

}  // namespace backstay::agent
