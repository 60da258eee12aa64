#include "around_harness.h"

namespace backstay::agent::testing {

std::vector<std::byte> object_of(Rank rank, RunId run, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t at = 0; at < bytes; ++at) {
    data[at] = static_cast<std::byte>((at * 31 + rank * 7 + run * 13 + at / 4096) & 0xff);
  }
  return data;
}

NodeFile::NodeFile(FileOf which, std::uint32_t nodes, std::uint32_t ranks,
                   const std::vector<Rank>& here, std::size_t bytes)
    : file(which) {
  manifest.job = "job";
  manifest.node = which.node;
  manifest.version = which.version;
  manifest.run = which.run;
  manifest.nodes = nodes;
  manifest.ranks = ranks;
  manifest.chunk_bytes_max = slot_bytes;
  segment.resize(format::segment_header_bytes);
  std::vector<std::pair<Rank, std::uint64_t>> objects;
  for (const Rank rank : here) {
    const auto data = object_of(rank, which.run, bytes);
    objects.emplace_back(rank, bytes);
    for (std::size_t at = 0; at < bytes; at += slot_bytes) {
      const Bytes piece = Bytes(data).subspan(at, std::min<std::size_t>(slot_bytes, bytes - at));
      manifest.chunks.push_back(
          {rank, static_cast<std::uint32_t>(piece.size()), at, segment.size(), checksum(piece)});
      segment.insert(segment.end(), piece.begin(), piece.end());
      segment.resize((segment.size() + 4095) / 4096 * 4096);
    }
  }
  manifest.segment_bytes = segment.size();
  EXPECT_TRUE(format::build_index(manifest, objects).ok());
  encoded = format::encode(manifest);
}

HeldFile NodeFile::held(bool recorded) const {
  HeldFile held{file, manifest.nodes, manifest.ranks, segment.size(), {}, std::nullopt};
  held.ranks = manifest.ranks_here();
  if (recorded) held.record = record();
  return held;
}

format::CommitRecord NodeFile::record() const {
  format::CommitRecord record;
  record.job = "job";
  record.version = file.version;
  record.run = file.run;
  record.nodes = manifest.nodes;
  record.ranks = manifest.ranks;
  return record;
}

AgentHarness::AgentHarness(std::uint32_t buffers, std::uint32_t ranks_of_job,
                           std::vector<Rank> local, std::uint32_t nodes)
    : pool_(std::move(
          Pool::create({std::uint64_t{buffers} * slot_bytes, slot_bytes, false}).value())),
      state_{.name = "job",
             .dir = "/unused",
             .pool = *pool_,
             .outbox = *this,
             .store = *this,
             .events = *this,
             .clock = system_clock()},
      directory_(*this),
      around_(*this) {
  state_.run = 99;
  state_.node = 0;
  state_.nodes = nodes;
  state_.ranks = ranks_of_job;
  state_.local_ranks = static_cast<std::uint32_t>(local.size());
  state_.around = nodes > 1 ? &around_ : nullptr;
  for (const Rank rank : local) {
    state_.links[rank] = {connection(rank), rank, {}, 1};
    ranks_[rank];
  }
  directory_.announce({});
  directory_.open();
}

void AgentHarness::put_local(const NodeFile& file) {
  disk.files[file.file] = &file;
  directory_.add(file.held());
  state_.versions.found({file.file.version, Level::local, file.record()}, Where::disk);
}

void AgentHarness::put_in_doubt(const NodeFile& file) {
  disk.files[file.file] = &file;
  directory_.add(file.held(/*recorded=*/false));
  StoredVersion stored{file.file.version, Level::none, file.record()};
  stored.in_doubt = true;
  state_.versions.found(stored, Where::disk);
}

void AgentHarness::put_durable(const NodeFile& file) {
  put_durable_late(file);
  list_durable();
}

void AgentHarness::put_durable_late(const NodeFile& file) {
  state_.durable_settings.dir = "/durable";
  durable.files[file.file] = &file;
}

void AgentHarness::list_durable() {
  for (const auto& [which, file] : durable.files) {
    const VersionRow* row = state_.versions.find(which.version);
    if (row != nullptr && row->shared && !row->shared->damage.empty()) continue;
    state_.versions.found({which.version, Level::durable, file->record()}, Where::shared);
  }
}

void AgentHarness::put_at(NodeId agent, const NodeFile& file) {
  agents[agent].files[file.file] = &file;
  std::vector<Rank> ranks = file.held().ranks;
  directory_.on(agent, wire::peer::Holds{1, file.file.version, file.file.run, file.file.node, false,
                                         false, ranks});
}

void AgentHarness::put_in_pool(const NodeFile& file) {
  MemoryVersion& version = state_.memory[file.file.version];
  version.info = {file.file.version,   file.file.run,       file.file.node,
                  file.manifest.nodes, file.manifest.ranks, slot_bytes};
  version.captured = true;
  for (const auto& object : file.manifest.objects) {
    version.object_bytes[object.id.number] = object.bytes;
  }
  for (const auto& chunk : file.manifest.chunks) {
    const std::uint32_t buffer = *pool_->take();
    std::memcpy(pool_->buffer(buffer).data(), file.segment.data() + chunk.segment_offset,
                chunk.length);
    version.chunks.push_back(
        {chunk.object.number, {buffer, chunk.length, chunk.object_offset, chunk.checksum}});
  }
}

void AgentHarness::put_parity_at(NodeId agent, const NodeFile& file) {
  directory_.on(agent, wire::peer::Holds{1, file.file.version, file.file.run, agent, true, false,
                                         file.held().ranks});
  rebuild_ = [this, &file](NodeId at, const RemoteFiles::Rebuilt& done) {
    later_.emplace_back([this, &file, at, done] {
      rebuilt_at.push_back(at);
      if (rebuilding_fails) return done(*rebuilding_fails);
      agents[at].files[file.file] = &file;
      done(file.file.node);
    });
  };
}

void AgentHarness::restart(VersionNumber version, RunId run, std::size_t bytes) {
  std::vector<Restore::Participant> all;
  for (const auto& [rank, link] : state_.links) {
    all.push_back({link.connection, rank, {}});
    ranks_[rank] = {};
    ranks_[rank].region.assign(bytes, ours);
  }
  restore_ = std::make_unique<Restore>(state_, all, wire::Restart{version, run});
  restore_->start();
}

void AgentHarness::fetch(Rank by, Rank of, VersionNumber version, RunId run, std::size_t bytes) {
  ranks_[by] = {};
  ranks_[by].region.assign(bytes, ours);
  const std::vector<Restore::Participant> one{{connection(by), of, {}}};
  wire::Fetch what{version, of};
  what.run = run;
  restore_ = std::make_unique<Restore>(state_, one, what);
  restore_->start();
}

void AgentHarness::proceed(Rank rank, bool good) {
  restore_->proceed(connection(rank), {ranks_[rank].plan.version, ranks_[rank].plan.attempt, good});
}

void AgentHarness::leave(Rank rank) {
  state_.links.erase(rank);
  restore_->disconnected(connection(rank));
}

void AgentHarness::settle() {
  while (step()) {
  }
  if (restore_->done()) {
    EXPECT_EQ(pool_->free_count(), free_before());
  }
}

bool AgentHarness::step() {
  if (later_.empty()) {
    restore_->pump();
    if (later_.empty()) return false;
  }
  const auto next = std::move(later_.front());
  later_.pop_front();
  next();
  return true;
}

void AgentHarness::expect_over(Code code) {
  settle();
  EXPECT_TRUE(restore_->done());
  for (const auto& [rank, sees] : ranks_) {
    if (state_.links.count(rank) == 0) continue;
    EXPECT_TRUE(sees.over) << rank;
    EXPECT_EQ(sees.code, code) << rank << ": " << sees.message;
  }
}

void AgentHarness::expect_restored(RunId run) {
  expect_over(Code::ok);
  for (const auto& [rank, sees] : ranks_) {
    EXPECT_TRUE(sees.region == object_of(rank, run, sees.region.size())) << rank;
  }
}

void AgentHarness::expect_untouched() {
  for (const auto& [rank, sees] : ranks_) {
    EXPECT_TRUE(std::all_of(sees.region.begin(), sees.region.end(), [](std::byte byte) {
      return byte == ours;
    })) << rank;
  }
}

std::uint32_t AgentHarness::free_before() const {
  std::uint32_t held = 0;
  for (const auto& [number, version] : state_.memory) {
    held += static_cast<std::uint32_t>(version.chunks.size());
  }
  return pool_->count() - held;
}

void AgentHarness::send(ConnectionId to, wire::Message message, std::vector<int>) {
  later_.emplace_back([this, rank = static_cast<Rank>(to - 100), message = std::move(message)] {
    if (state_.links.count(rank) != 0) answer(rank, ranks_.at(rank), message);
  });
}

void AgentHarness::answer(Rank rank, RankSees& sees, const wire::Message& message) {
  if (const auto* plan = std::get_if<wire::Plan>(&message)) {
    EXPECT_TRUE(sees.exchanged.empty()) << "a new plan before our bytes are back";
    sees.plan = *plan;
    sees.kept.clear();
    sees.ready = false;
    ++sees.plans;
    sees.over = plan->code != Code::ok;
    sees.code = plan->code;
    sees.message = plan->message;
  } else if (const auto* chunks = std::get_if<wire::Chunks>(&message)) {
    if (chunks->attempt == sees.plan.attempt) look_at(rank, sees, *chunks);
  } else if (const auto* withdraw = std::get_if<wire::Withdraw>(&message)) {
    ++withdrawals;
    for (const auto& chunk : sees.exchanged) swap(sees, chunk);
    sees.exchanged.clear();
    restore_->withdrawn(connection(rank), {withdraw->version, withdraw->attempt});
  } else if (std::holds_alternative<wire::Ready>(message)) {
    sees.ready = true;
    if (proceed_at_once) proceed(rank, true);
  } else if (std::holds_alternative<wire::Deliver>(message)) {
    sees.delivering = true;
    for (const auto& chunk : sees.kept) copy(sees, chunk);
    sees.exchanged.clear();
    maybe_restored(rank, sees);
  } else if (const auto* captured = std::get_if<wire::Captured>(&message)) {
    sees.over = true;
    sees.code = captured->code;
    sees.message = captured->message;
  }
}

void AgentHarness::look_at(Rank rank, RankSees& sees, const wire::Chunks& chunks) {
  for (const auto& chunk : chunks.chunks) {
    const Bytes piece = pool_->buffer(chunk.buffer).first(chunk.length);
    const bool good = checksum(piece) == chunk.checksum;
    if (good && sees.delivering) {
      copy(sees, chunk);
    } else if (good && chunks.held && !sees.plan.from_pool) {
      swap(sees, chunk);
      sees.exchanged.push_back(chunk);
      sees.delivered += chunk.length;
    } else if (good && chunks.held) {
      sees.kept.push_back(chunk);
    }
    const bool early =
        !chunks.held && !sees.delivering && sees.chunks++ > 0 && take_early.contains(rank);
    if (early) copy(sees, chunk);
    const Status status = restore_->verified(
        connection(rank),
        {chunks.version, {chunk.buffer}, good, good ? "" : "bad bytes", chunks.attempt, early});
    EXPECT_TRUE(status.ok());
    if (!good) {
      sees.delivered = 0;
      return;
    }
  }
  maybe_restored(rank, sees);
}

void AgentHarness::swap(RankSees& sees, const wire::ChunkInPool& chunk) {
  std::swap_ranges(pool_->buffer(chunk.buffer).begin(),
                   pool_->buffer(chunk.buffer).begin() + chunk.length,
                   sees.region.begin() + static_cast<std::ptrdiff_t>(chunk.object_offset));
}

void AgentHarness::copy(RankSees& sees, const wire::ChunkInPool& chunk) {
  std::memcpy(sees.region.data() + chunk.object_offset, pool_->buffer(chunk.buffer).data(),
              chunk.length);
  sees.delivered += chunk.length;
}

void AgentHarness::maybe_restored(Rank rank, RankSees& sees) {
  const bool exchanged_all = !sees.plan.from_pool && sees.kept.empty();
  const bool whole =
      exchanged_all ? sees.delivered >= sees.region.size() : sees.delivered == sees.region.size();
  if (!sees.delivering || !whole) return;
  sees.delivering = false;
  restore_->restored(connection(rank), {sees.plan.version, Code::ok});
}

void AgentHarness::serve(Disk& on, Place place, Command command) {
  if (std::holds_alternative<ScanJob>(command)) {
    later_.emplace_back([this] {
      ++durable_looks;
      list_durable();
      --state_.durable_looks;
      restore_->durable_scanned();
    });
  }
  if (const auto* event = std::get_if<AppendEvent>(&command)) events.push_back(event->line);
  if (auto* load = std::get_if<LoadManifest>(&command)) {
    later_.emplace_back([this, &on, place, what = *load] {
      ManifestLoaded loaded{what.record.version, Error(Code::not_found, "no such manifest")};
      for (const auto& [which, file] : on.files) {
        if (which.version != what.record.version || which.node != what.node) continue;
        loaded.manifest = file->manifest;
      }
      if (on.fails) loaded.manifest = Error(*on.fails, "the disk fails");
      restore_->on(loaded, place);
    });
  } else if (auto* read = std::get_if<ReadChunk>(&command)) {
    later_.emplace_back([this, &on, what = *read] {
      ChunkRead event{what.version, what.buffer, what.ticket, {}, what.chunk.length};
      for (const auto& [which, file] : on.files) {
        if (which != what.older.value_or(FileOf{what.version, which.run, what.node})) continue;
        event.status = bring(on, *file, what.chunk.segment_offset,
                             what.memory.first(format::slot_bytes(what.chunk.length)));
      }
      restore_->on(event);
    });
  }
}

Status AgentHarness::bring(Disk& from, const NodeFile& file, std::uint64_t offset,
                           std::span<std::byte> memory) {
  ++from.reads;
  if (from.fails) return Error(*from.fails, "cannot be read");
  if (from.busy > 0 && from.busy-- > 0) return Error(Code::again, "too many are waiting");
  if (from.reads_until_failure == 0) return Error(from.fails_then, "the connection is gone");
  if (from.reads_until_failure > 0) --from.reads_until_failure;
  std::memcpy(memory.data(), file.segment.data() + offset, memory.size());
  if (from.damage.count({file.file.node, offset}) != 0) memory[0] ^= std::byte{1};
  return {};
}

void AgentHarness::read(NodeId holder, const FileOf& file, std::uint64_t offset,
                        std::span<std::byte> memory, Done done) {
  later_.emplace_back([this, holder, file, offset, memory, done = std::move(done)] {
    Disk& from = agents[holder];
    const auto found = from.files.find(file);
    if (found == from.files.end()) return done(Error(Code::not_found, "no such file"));
    done(bring(from, *found->second, offset, memory));
  });
}

void AgentHarness::read_manifest(NodeId holder, const FileOf& file, DoneManifest done) {
  later_.emplace_back([this, holder, file, done = std::move(done)] {
    const Disk& from = agents[holder];
    const auto found = from.files.find(file);
    if (from.fails) return done(Error(*from.fails, "cannot be read"));
    if (found == from.files.end()) return done(Error(Code::not_found, "no such file"));
    Buffer bytes = found->second->encoded;
    if (from.bad_manifests) bytes[100] ^= std::byte{1};
    done(std::move(bytes));
  });
}

void AgentHarness::send(NodeId to, wire::peer::Message message) {
  if (to != 0) return;  // answers to put_at()
  later_.emplace_back([this, message] { hears(directory_, 0, message); });
}

}  // namespace backstay::agent::testing
