#include "bin/commands/check_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "store/held_file.h"
#include "store/needed_files.h"
#include "store/needed_segment.h"
#include "store/part_reader.h"

namespace backstay::bin {
namespace {

constexpr std::size_t damages_kept = 20;
constexpr unsigned reads_ahead = 4;

// The check of one node's part. Threads take the next chunk from a counter; they add damage under a
// lock, which is rare.
class NodeCheck {
 public:
  NodeCheck(tier::Tier& tier, const format::Manifest& manifest, Progress& progress,
            CheckResult& result)
      : tier_(tier), manifest_(manifest), progress_(progress), result_(result) {}

  Status run(unsigned threads) {
    std::set<store::FileOf> lost;
    for (const store::FileOf& older : store::needed_files(manifest_)) {
      const auto reader = store::open_needed(tier_, manifest_.job, older);
      if (reader.ok()) continue;
      BACKSTAY_TRY(damage_or_failure(reader.error()));
      lost.insert(older);
    }
    for (const format::ChunkEntry& chunk : manifest_.chunks) {
      if (!lost.contains(store::file_with(manifest_, chunk))) chunks_.push_back(&chunk);
    }
    BACKSTAY_TRY(check_chunks(threads));
    BACKSTAY_TRY(check_own_header());
    return check_tables();
  }

 private:
  struct Slot {
    AlignedMemory memory;
    const format::ChunkEntry* chunk = nullptr;
  };

  Status check_chunks(unsigned threads) {
    std::vector<std::thread> workers;
    const std::size_t useful = std::max<std::size_t>(1, chunks_.size() / reads_ahead);
    for (unsigned i = 0; i < std::min<std::size_t>(threads, useful); ++i)
      workers.emplace_back([this] { keep_first(work()); });
    for (std::thread& worker : workers) worker.join();
    return failure_ ? Status(*failure_) : Status();
  }

  Status damage_or_failure(const Error& error) {
    if (!is_damage(error.code())) return error;
    add_damage(error.message());
    return {};
  }

  void keep_first(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && !failure_) failure_ = status.error();
    if (!status.ok()) next_ = chunks_.size();  // the others need not go on
  }

  void add_damage(std::string what) {
    const std::lock_guard lock(mutex_);
    if (result_.damages++ < damages_kept)
      result_.damaged.push_back({manifest_.node, std::move(what)});
  }

  Status work() {
    store::PartReader reader({&tier_}, manifest_);
    BACKSTAY_TRY(reader.open());
    std::vector<Slot> slots;
    for (unsigned i = 0; i < std::min(reads_ahead, reader.depth()); ++i)
      slots.push_back({AlignedMemory(manifest_.chunk_bytes_max), nullptr});
    for (std::size_t i = 0; i < slots.size(); ++i) start_next(reader, slots[i], i);
    Status status;
    while (reader.in_flight() > 0) {
      for (const tier::Done& done : reader.reap(true)) {
        Slot& slot = slots[done.tag];
        if (status.ok()) status = look_at(*slot.chunk, done.status);
        if (status.ok()) start_next(reader, slot, done.tag);
      }
    }
    return status;
  }

  void start_next(store::PartReader& reader, Slot& slot, std::uint64_t tag) {
    const std::size_t index = next_.fetch_add(1);
    if (index >= chunks_.size()) return;
    slot.chunk = chunks_[index];
    reader.start(*slot.chunk, slot.memory.span(), tag);
  }

  Status look_at(const format::ChunkEntry& chunk, const Status& read) {
    progress_.add(chunk.length);
    checked_.fetch_add(1);
    bytes_.fetch_add(chunk.length);
    if (read.ok()) return {};
    if (read.error().code() == Code::not_found) return read;
    add_damage(read.error().message());
    return {};
  }

  Status check_own_header() {
    const store::FileOf own = store::file_of(manifest_);
    BACKSTAY_ASSIGN(const auto reader, tier_.open(store::names_of(manifest_.job, own).data));
    const Status good = store::check_header(*reader, manifest_.job, own);
    if (!good.ok()) add_damage("the segment's header: " + good.error().message());
    return {};
  }

  // Tables are inside chunks, so this can only find mistakes of the program's library.
  Status check_tables() {
    result_.chunks += checked_, result_.bytes += bytes_;
    if (result_.damages > 0) return {};
    BACKSTAY_ASSIGN(NodeReader reader, NodeReader::open(tier_, manifest_));
    for (const format::ObjectEntry& object : manifest_.objects) {
      const Status good = check_table(reader, object);
      if (good.ok()) continue;
      if (!is_damage(good.error().code())) return good;
      add_damage(format::object_name(object.id) + ": " + good.error().message());
    }
    return {};
  }

  Status check_table(NodeReader& reader, const format::ObjectEntry& object) {
    BACKSTAY_ASSIGN(const auto image, reader.image(object));
    if (image) return {};
    if (object.id.kind == format::ObjectKind::regions) {
      BACKSTAY_ASSIGN(const format::Table table, reader.table(object));
      result_.regions += table.regions.size();
      BACKSTAY_TRY(reader.streams(object, table));
    } else if (object.id.kind == format::ObjectKind::files) {
      BACKSTAY_ASSIGN(const auto files, reader.files(object));
      result_.files += files.size();
    }
    return {};
  }

  tier::Tier& tier_;
  const format::Manifest& manifest_;
  Progress& progress_;
  CheckResult& result_;
  std::vector<const format::ChunkEntry*> chunks_;  // of all segments
  std::mutex mutex_;                               // of result_.damages and damaged, failure_
  std::optional<Error> failure_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> checked_{0}, bytes_{0};
};

// A node's disk of a larger run holds its own part only.
bool has_all_nodes(const store::StoredVersion& version) {
  return version.record.nodes == 1 || version.level == Level::durable;
}

void add_missing(const store::StoredVersion& version, const std::vector<NodeId>& there,
                 CheckResult& result) {
  for (NodeId node = 0; node < version.record.nodes; ++node) {
    if (std::binary_search(there.begin(), there.end(), node)) continue;
    ++result.damages;
    result.damaged.push_back({node, "its manifest is missing"});
  }
}

// What the commit record says of all manifests.
struct Whole {
  std::uint64_t digests = 0;
  std::vector<format::Need> needs;
  bool is_that_of(const format::CommitRecord& record) const {
    return digests == record.manifests_sum && needs == record.needs;
  }
};

Status check_node(Stored& stored, const std::string& job, const store::StoredVersion& version,
                  NodeId node, unsigned threads, Progress& progress, CheckResult& result,
                  Whole& whole) {
  const auto manifest = store::read_manifest(stored.tier(), job, version.record, node);
  if (!manifest.ok() && is_damage(manifest.error().code())) {
    ++result.damages;
    result.damaged.push_back({node, manifest.error().message()});
    return {};
  }
  if (!manifest.ok()) return manifest.error();
  whole.digests += format::manifest_digest(format::encode(*manifest));
  whole.needs = format::both_needs(whole.needs, manifest->needs);
  return NodeCheck(stored.tier(), *manifest, progress, result).run(threads);
}

}  // namespace

Result<CheckResult> check_version(Stored& stored, const std::string& job,
                                  const store::StoredVersion& version, unsigned threads,
                                  Progress& progress) {
  CheckResult result;
  if (version.level == Level::none) {
    result.damages = 1;
    result.damaged.push_back({0, version.damage});
    return result;
  }
  BACKSTAY_ASSIGN(const std::vector<NodeId> nodes, stored.nodes(job, version.version));
  if (has_all_nodes(version)) add_missing(version, nodes, result);
  Whole whole;
  for (const NodeId node : nodes) {
    const Status done = check_node(stored, job, version, node, threads, progress, result, whole);
    if (!done.ok() && done.error().code() == Code::not_found) {
      // Either the version was removed while we read, or a file of it is missing.
      BACKSTAY_ASSIGN(const auto again, stored.version(job, version.version));
      if (!again.good() && again.damage.empty()) return done.error();
      ++result.damages;
      result.damaged.push_back({node, done.error().message()});
    } else if (!done.ok() && is_damage(done.error().code())) {
      ++result.damages;
      result.damaged.push_back({node, done.error().message()});
    } else if (!done.ok()) {
      return done.error();
    }
  }
  if (has_all_nodes(version) && result.damages == 0 && !whole.is_that_of(version.record)) {
    ++result.damages;
    result.damaged.push_back({0, "the manifests are not those that were committed"});
  }
  return result;
}

}  // namespace backstay::bin
