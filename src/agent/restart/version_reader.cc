#include "agent/restart/version_reader.h"

#include <algorithm>
#include <utility>

#include "agent/disk/links.h"
#include "agent/group/remote_files.h"
#include "base/check.h"
#include "format/segment.h"
#include "store/needed_files.h"

namespace backstay::agent {

namespace {

// All nodes of a run, those first that are near the one which would have the rank if the ranks were
// dealt out in blocks.
std::vector<NodeId> likeliest_first(Rank rank, std::uint32_t nodes, std::uint32_t ranks) {
  const std::uint64_t guess =
      ranks == 0 ? 0 : std::min<std::uint64_t>(std::uint64_t{rank} * nodes / ranks, nodes - 1);
  std::vector<NodeId> order{static_cast<NodeId>(guess)};
  for (std::uint64_t away = 1; order.size() < nodes; ++away) {
    if (guess + away < nodes) order.push_back(static_cast<NodeId>(guess + away));
    if (away <= guess) order.push_back(static_cast<NodeId>(guess - away));
  }
  return order;
}

}  // namespace

void VersionReader::open(const FoundVersion& found) {
  BACKSTAY_CHECK(reading_.empty() && waiting_.empty() && manifests_.empty());  // closed
  ++opened_;
  version_ = found.version;
  nodes_ = std::max(found.nodes, 1u);
  ranks_ = found.ranks;
}

void VersionReader::close() {
  ++opened_;
  for (const auto& [ticket, reading] : reading_) orphans_[ticket] = reading.buffer;
  reading_.clear();
  for (auto& [place, asked] : asked_) std::fill(asked.begin(), asked.end(), std::nullopt);
  waiting_.clear();
  manifests_.clear();
  for (const auto& [place, keeps] : std::exchange(keeps_, {})) post(place, DoneReading{});
}

void VersionReader::post(Place place, Command command) {
  if (place != Place::durable) return state_.store.post(std::move(command));
  state_.store.post_drain(std::move(command));
}

// --- manifests -----------------------------------------------------------------------------------

void VersionReader::locate(const Source& source, Rank rank, Loaded done) {
  auto nodes = std::make_shared<std::vector<NodeId>>(1, source.node);
  if (source.node == Source::any_node) *nodes = likeliest_first(rank, nodes_, ranks_);
  look_at_next(std::move(nodes), 0, source, rank, std::move(done));
}

void VersionReader::look_at_next(std::shared_ptr<std::vector<NodeId>> nodes, std::size_t at,
                                 Source source, Rank rank, Loaded done) {
  source.node = (*nodes)[at];
  load(source, [this, nodes, at, source, rank, done](const Result<ManifestPtr>& manifest) {
    const bool last = at + 1 == nodes->size();
    const bool missing = !manifest.ok() && manifest.error().code() == Code::not_found;
    const bool elsewhere = missing || (manifest.ok() && (*manifest)->find(rank) == nullptr);
    if (elsewhere && !last) return look_at_next(nodes, at + 1, source, rank, done);
    if (!manifest.ok()) return done(manifest.error());
    done(Located{source, *manifest});
  });
}

void VersionReader::load(const Source& source, Waiting waiting) {
  if (const auto known = manifests_.find(source); known != manifests_.end()) {
    return waiting(known->second);
  }
  std::vector<Waiting>& all = waiting_[source];
  all.push_back(std::move(waiting));
  if (all.size() > 1) return;
  source.place == Place::replica ? load_from_agent(source) : load_from_disk(source);
}

void VersionReader::load_from_disk(const Source& source) {
  ++loads_;
  asked_[source.place].push_back(source);
  keeps_[source.place] = true;
  post(source.place, LoadManifest{record_at(source.place), source.node});
}

// Where the version was removed meanwhile, what the restart knows of it.
format::CommitRecord VersionReader::record_at(Place place) const {
  const VersionRow* row = state_.versions.find(version_.first);
  const std::optional<StoredVersion> none;
  const auto& stored = row == nullptr ? none : place == Place::durable ? row->shared : row->disk;
  if (stored) return stored->record;
  format::CommitRecord record;
  record.version = version_.first;
  record.run = version_.second;
  record.nodes = nodes_;
  record.ranks = ranks_;
  return record;
}

void VersionReader::load_from_agent(const Source& source) {
  if (state_.around == nullptr) return loaded(source, Error(Code::agent_lost, "no other agents"));
  ++loads_;
  state_.around->files().read_manifest(source.holder, file_of(source),
                                       [this, source, opened = opened_](Result<Buffer> bytes) {
                                         --loads_;
                                         if (opened == opened_)
                                           loaded(source, check(source, bytes));
                                       });
}

Result<ManifestPtr> VersionReader::check(const Source& source, const Result<Buffer>& bytes) const {
  if (!bytes.ok()) return bytes.error();
  BACKSTAY_ASSIGN(format::Manifest manifest, format::decode_manifest(*bytes));
  if (manifest.job != state_.name || manifest.version != version_.first ||
      manifest.run != version_.second || manifest.node != source.node) {
    return Error(Code::corrupt, "the manifest belongs to another version");
  }
  return std::make_shared<const format::Manifest>(std::move(manifest));
}

void VersionReader::on(const ManifestLoaded& event, Place place) {
  auto& asked = asked_[place];
  BACKSTAY_CHECK(!asked.empty());
  const std::optional<Source> source = asked.front();
  asked.pop_front();
  --loads_;
  if (!source) return;
  if (!event.manifest.ok()) return loaded(*source, event.manifest.error());
  loaded(*source, std::make_shared<const format::Manifest>(*event.manifest));
}

void VersionReader::loaded(const Source& source, const Result<ManifestPtr>& manifest) {
  if (manifest.ok()) manifests_[source] = *manifest;
  const std::uint64_t opened = opened_;
  const auto waiting = waiting_.extract(source);
  if (waiting.empty()) return;
  for (const Waiting& one : waiting.mapped()) {
    if (opened == opened_) one(manifest);  // one of them may close us
  }
}

// --- chunks --------------------------------------------------------------------------------------

void VersionReader::read(const Source& source, const format::Manifest& manifest,
                         const format::ChunkEntry& chunk, std::uint32_t buffer, std::size_t index) {
  BACKSTAY_CHECK(source.place != Place::pool && source.node != Source::any_node);
  const std::uint64_t ticket = next_ticket_++;
  reading_[ticket] = {index, buffer, source};
  const std::span<std::byte> memory = state_.pool.buffer(buffer);
  const FileOf segment = store::file_with(manifest, chunk);
  if (source.place != Place::replica) {
    const auto older = chunk.here() ? std::nullopt : std::optional(segment);
    return post(source.place,
                ReadChunk{version_.first, source.node, buffer, memory, chunk, ticket, older});
  }
  BACKSTAY_CHECK(state_.around != nullptr);
  state_.around->files().read(source.holder, segment, chunk.segment_offset,
                              memory.first(format::slot_bytes(chunk.length)),
                              [this, ticket](const Status& status) { arrived(ticket, status); });
}

void VersionReader::arrived(std::uint64_t ticket, const Status& status) {
  if (const auto orphan = orphans_.find(ticket); orphan != orphans_.end()) {
    state_.pool.give_back(orphan->second);
    orphans_.erase(orphan);
    return;
  }
  const auto at = reading_.find(ticket);
  BACKSTAY_CHECK(at != reading_.end());
  const Reading reading = at->second;
  reading_.erase(at);
  arrived_(reading.index, reading.buffer, reading.source, status);
}

}  // namespace backstay::agent
