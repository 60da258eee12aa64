#include "strategy/file_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/attempt.h"
#include "base/machine.h"
#include "base/tell.h"
#include "store/catalog.h"

namespace backstay::strategy {

namespace {

// Of the memory that is left on the node, for what its ranks hold until all have verified.
constexpr std::uint64_t held_share = 2;

// One object on its way to a target: verify(), then deliver() or take_back().
class Restoring {
 public:
  Restoring(client::ObjectTarget& target, std::uint64_t held_max)
      : target_(target), held_max_(held_max) {}

  Status verify(const FoundObject& found) {
    found_ = found;
    BACKSTAY_TRY(match());
    std::vector<const format::ChunkEntry*> rest;
    for (const format::ChunkEntry& chunk : found_.chunks) {
      if (chunk.object_offset < tail_begin_) rest.push_back(&chunk);
    }
    const auto take = [this](const format::ChunkEntry& chunk, AlignedMemory& memory) {
      keep(chunk, memory);
      return Status();
    };
    return read_chunks(*found_.reader, rest, take);
  }

  void take_back() {
    for (const Held& held : held_) {
      if (held.exchanged) (void)target_.exchange(held.chunk->object_offset, bytes_of(held));
    }
  }

  Status deliver() {
    for (const Held& held : held_) {
      if (held.exchanged) continue;
      BACKSTAY_TRY(target_.place(held.chunk->object_offset, bytes_of(held), nullptr));
    }
    const auto place = [this](const format::ChunkEntry& chunk, AlignedMemory& memory) {
      return target_.place(chunk.object_offset, memory.span().first(chunk.length), nullptr);
    };
    BACKSTAY_TRY(read_chunks(*found_.reader, again_, place));
    return target_.finish();
  }

 private:
  struct Held {
    const format::ChunkEntry* chunk;
    AlignedMemory memory;
    bool exchanged;
  };
  static std::span<std::byte> bytes_of(const Held& held) {
    return held.memory.span().first(held.chunk->length);
  }

  // The table is at the object's end, and says whether the target wants the rest.
  Status match() {
    const std::uint64_t bytes = found_.object->bytes;
    if (bytes < format::object_footer_bytes) {
      return Error(Code::corrupt, "the object is shorter than its footer");
    }
    BACKSTAY_ASSIGN(Buffer tail, last(format::object_footer_bytes));
    BACKSTAY_ASSIGN(const std::uint64_t needed, target_.tail_bytes(tail, bytes));
    if (needed > bytes) return Error(Code::corrupt, "the object is shorter than its table");
    BACKSTAY_ASSIGN(tail, last(needed));
    BACKSTAY_TRY(target_.match_tail(tail, bytes));
    for (auto& [chunk, memory] : tail_) keep(*chunk, memory);
    tail_.clear();
    return {};
  }

  // Reads as many chunks from the end on as hold these bytes.
  Result<Buffer> last(std::uint64_t bytes) {
    const std::uint64_t begin = found_.object->bytes - bytes;
    while (tail_begin_ > begin || tail_.empty()) {
      const format::ChunkEntry& chunk = found_.chunks[found_.chunks.size() - 1 - tail_.size()];
      const auto take = [this](const format::ChunkEntry& one, AlignedMemory& memory) {
        tail_.emplace_back(&one, std::move(memory));
        return Status();
      };
      BACKSTAY_TRY(read_chunks(*found_.reader, {&chunk}, take));
      tail_begin_ = chunk.object_offset;
    }
    Buffer out;
    for (auto at = tail_.rbegin(); at != tail_.rend(); ++at) {
      const auto& [chunk, memory] = *at;
      const std::uint64_t skipped = begin - std::min(begin, chunk->object_offset);
      if (skipped >= chunk->length) continue;
      const auto part = memory.span().subspan(skipped, chunk->length - skipped);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

  void keep(const format::ChunkEntry& chunk, AlignedMemory& memory) {
    if (held_bytes_ + chunk.length > held_max_) return again_.push_back(&chunk);
    held_bytes_ += chunk.length;
    Held& held = held_.emplace_back(Held{&chunk, std::move(memory), false});
    held.exchanged = target_.exchange(chunk.object_offset, bytes_of(held));
  }

  client::ObjectTarget& target_;
  const std::uint64_t held_max_;
  FoundObject found_;
  std::uint64_t tail_begin_ = UINT64_MAX;
  std::vector<std::pair<const format::ChunkEntry*, AlignedMemory>> tail_;  // the last one first
  std::vector<Held> held_;
  std::uint64_t held_bytes_ = 0;
  std::vector<const format::ChunkEntry*> again_;  // read a second time: no memory to hold them
};

}  // namespace

Result<format::CommitRecord> good_record(Directory& directory, VersionNumber version, RunId run) {
  const store::StoredVersion stored = store::look_at(directory.tier(), directory.job(), version);
  if (stored.unreadable) return *stored.unreadable;
  if (!stored.damage.empty()) return Error(Code::corrupt, stored.damage);
  if (stored.good() && (run == 0 || stored.record.run == run)) return stored.record;
  return Error(Code::not_found, fmt::format("there is no version {}", version));
}

Result<FileVersions::Offer> FileVersions::newest_below(VersionNumber version, RunId) {
  Offer offer{.code = Code::none};
  if (group_.rank() != 0) return offer;
  if (!versions_) {
    BACKSTAY_ASSIGN(versions_, store::scan(directory_.tier(), directory_.job()));
  }
  for (const store::StoredVersion& stored : *versions_) {
    if (version != 0 && stored.version >= version) break;
    if (stored.good()) {
      const format::CommitRecord& record = stored.record;
      offer = {record.version, record.run, record.ranks};
    } else if (!stored.damage.empty()) {
      const Code code = stored.unreadable ? stored.unreadable->code() : Code::corrupt;
      offer = {.version = stored.version, .code = code, .message = stored.damage};
    }
  }
  return offer;
}

client::RestoreOutcome FileVersions::restore(client::ObjectTarget& target, VersionNumber version,
                                             RunId run, const client::Restore::Agree& agree) {
  client::RestoreOutcome outcome;
  outcome.version = version;
  const std::uint64_t share =
      memory_left().bytes / held_share / static_cast<std::uint64_t>(group_.local_ranks());
  Restoring restoring(target, share);
  std::optional<FileObjects> objects;
  const Status verified = attempt([&]() -> Status {
    BACKSTAY_ASSIGN(auto record, good_record(directory_, version, run));
    objects.emplace(directory_.tier(), std::move(record));
    BACKSTAY_ASSIGN(const FoundObject found, objects->find(static_cast<Rank>(group_.rank())));
    return restoring.verify(found);
  });
  outcome.agreed = agree(verified);
  if (!outcome.agreed.ok()) {
    restoring.take_back();
    outcome.status = outcome.agreed;
    return outcome;
  }
  outcome.touched = true;
  outcome.status = attempt([&] { return restoring.deliver(); });
  outcome.complete = outcome.status.ok();
  return outcome;
}

void FileVersions::skipped(VersionNumber version, const Error& why) {
  if (group_.rank() != 0 || !store::is_damage_or_gone(why.code())) return;
  if (const Status aside = directory_.set_aside(version, why.message()); !aside.ok()) {
    tell_user(fmt::format("version {} is damaged and could not be set aside: {}", version,
                          aside.error().message()));
  }
}

}  // namespace backstay::strategy
