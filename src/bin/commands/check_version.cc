#include "bin/commands/check_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "base/checksum.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::bin {
namespace {

constexpr std::size_t damages_kept = 20;
constexpr unsigned reads_ahead = 4;

bool is_damage(const Error& error) {
  return error.code() == Code::corrupt || error.code() == Code::format ||
         error.code() == Code::too_large;
}

// The check of one node's part. Threads take the next chunk from a counter; they add damage under a
// lock, which is rare.
class NodeCheck {
 public:
  NodeCheck(tier::Tier& tier, const format::Manifest& manifest, Progress& progress,
            CheckResult& result)
      : tier_(tier), manifest_(manifest), progress_(progress), result_(result) {}

  Status run(unsigned threads) {
    std::vector<std::thread> workers;
    const std::size_t useful = std::max<std::size_t>(1, manifest_.chunks.size() / reads_ahead);
    for (unsigned i = 0; i < std::min<std::size_t>(threads, useful); ++i)
      workers.emplace_back([this] { keep_first(work()); });
    for (std::thread& worker : workers) worker.join();
    if (failure_) return *failure_;
    BACKSTAY_TRY(check_header());
    return check_tables();
  }

 private:
  struct Slot {
    AlignedMemory memory;
    const format::ChunkEntry* chunk = nullptr;
  };

  void keep_first(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && !failure_) failure_ = status.error();
    if (!status.ok()) next_ = manifest_.chunks.size();  // the others need not go on
  }

  void add_damage(std::string what) {
    const std::lock_guard lock(mutex_);
    if (result_.damages++ < damages_kept)
      result_.damaged.push_back({manifest_.node, std::move(what)});
  }

  std::string segment() const {
    return format::segment_name(format::version_folder(manifest_.job, manifest_.version),
                                manifest_.node);
  }

  Status work() {
    BACKSTAY_ASSIGN(const auto reader, tier_.open(segment()));
    std::vector<Slot> slots;
    for (unsigned i = 0; i < std::min(reads_ahead, reader->depth()); ++i)
      slots.push_back({AlignedMemory(manifest_.chunk_bytes_max), nullptr});
    for (std::size_t i = 0; i < slots.size(); ++i) start_next(*reader, slots[i], i);
    Status status;
    while (reader->in_flight() > 0) {
      for (const tier::Done& done : reader->reap(true)) {
        Slot& slot = slots[done.tag];
        if (status.ok()) status = look_at(slot, done.status);
        if (status.ok()) start_next(*reader, slot, done.tag);
      }
    }
    return status;
  }

  void start_next(tier::Reader& reader, Slot& slot, std::uint64_t tag) {
    const std::size_t index = next_.fetch_add(1);
    if (index >= manifest_.chunks.size()) return;
    slot.chunk = &manifest_.chunks[index];
    reader.read(slot.chunk->segment_offset,
                slot.memory.span().first(format::slot_bytes(slot.chunk->length)), tag);
  }

  Status look_at(Slot& slot, const Status& read) {
    const format::ChunkEntry& chunk = *slot.chunk;
    progress_.add(chunk.length);
    chunks_.fetch_add(1);
    bytes_.fetch_add(chunk.length);
    const auto where = [&] {
      return fmt::format("rank {}, bytes {} to {} of its object", chunk.rank, chunk.object_offset,
                         chunk.object_offset + chunk.length - 1);
    };
    if (!read.ok() && read.error().code() == Code::not_found) return read;
    if (!read.ok())
      add_damage(where() + " cannot be read: " + read.error().message());
    else if (checksum(slot.memory.span().first(chunk.length)) != chunk.checksum)
      add_damage(where() + " do not match their checksum");
    return {};
  }

  Status check_header() {
    BACKSTAY_ASSIGN(const auto reader, tier_.open(segment()));
    AlignedMemory block(format::segment_header_bytes);
    reader->read(0, block.span(), 0);
    for (const tier::Done& done : reader->reap(true)) {
      if (!done.status.ok())
        add_damage("the segment's header cannot be read: " + done.status.error().message());
      if (!done.status.ok()) return {};
    }
    const auto header = format::decode_segment_header(block.span());
    if (!header.ok())
      add_damage("the segment's header: " + header.error().message());
    else if (header->job != manifest_.job || header->version != manifest_.version ||
             header->node != manifest_.node || header->run != manifest_.run)
      add_damage("the segment belongs to another version");
    return {};
  }

  // Tables are inside chunks, so this can only find mistakes of the program's library.
  Status check_tables() {
    result_.chunks += chunks_, result_.bytes += bytes_;
    if (result_.damages > 0) return {};
    BACKSTAY_ASSIGN(NodeReader reader, NodeReader::open(tier_, manifest_));
    for (const format::ObjectEntry& object : manifest_.objects) {
      const auto table = reader.table(object);
      if (table.ok()) result_.regions += table->regions.size();
      if (table.ok()) continue;
      if (!is_damage(table.error())) return table.error();
      add_damage(fmt::format("rank {}: {}", object.rank, table.error().message()));
    }
    return {};
  }

  tier::Tier& tier_;
  const format::Manifest& manifest_;
  Progress& progress_;
  CheckResult& result_;
  std::mutex mutex_;  // of result_.damages and damaged, failure_
  std::optional<Error> failure_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> chunks_{0}, bytes_{0};
};

// A node's disk of a larger run holds its own part only.
bool has_all_nodes(const agent::StoredVersion& version) {
  return version.record.nodes == 1 || version.level == Level::durable;
}

void add_missing(const agent::StoredVersion& version, const std::vector<NodeId>& there,
                 CheckResult& result) {
  for (NodeId node = 0; node < version.record.nodes; ++node) {
    if (std::binary_search(there.begin(), there.end(), node)) continue;
    ++result.damages;
    result.damaged.push_back({node, "its manifest is missing"});
  }
}

Status check_node(Stored& stored, const std::string& job, const agent::StoredVersion& version,
                  NodeId node, unsigned threads, Progress& progress, CheckResult& result,
                  std::uint64_t& digests) {
  const auto manifest = agent::read_manifest(stored.tier(), job, version.record, node);
  if (!manifest.ok() && is_damage(manifest.error())) {
    ++result.damages;
    result.damaged.push_back({node, manifest.error().message()});
    return {};
  }
  if (!manifest.ok()) return manifest.error();
  digests += format::manifest_digest(format::encode(*manifest));
  return NodeCheck(stored.tier(), *manifest, progress, result).run(threads);
}

}  // namespace

Result<CheckResult> check_version(Stored& stored, const std::string& job,
                                  const agent::StoredVersion& version, unsigned threads,
                                  Progress& progress) {
  CheckResult result;
  if (version.level == Level::none) {
    result.damages = 1;
    result.damaged.push_back({0, version.damage});
    return result;
  }
  BACKSTAY_ASSIGN(const std::vector<NodeId> nodes, stored.nodes(job, version.version));
  if (has_all_nodes(version)) add_missing(version, nodes, result);
  std::uint64_t digests = 0;
  for (const NodeId node : nodes) {
    const Status done = check_node(stored, job, version, node, threads, progress, result, digests);
    if (!done.ok() && done.error().code() == Code::not_found) {
      // Either the version was removed while we read, or a file of it is missing.
      BACKSTAY_ASSIGN(const auto again, stored.version(job, version.version));
      if (!again.good() && again.damage.empty()) return done.error();
      ++result.damages;
      result.damaged.push_back({node, done.error().message()});
    } else if (!done.ok() && is_damage(done.error())) {
      ++result.damages;
      result.damaged.push_back({node, done.error().message()});
    } else if (!done.ok()) {
      return done.error();
    }
  }
  if (has_all_nodes(version) && result.damages == 0 && digests != version.record.manifests_sum) {
    ++result.damages;
    result.damaged.push_back({0, "the manifests are not those that were committed"});
  }
  return result;
}

}  // namespace backstay::bin
