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

// The ranks of a node hold this share of the memory that is left until all have verified: 1 / 2.
constexpr std::uint64_t held_share = 2;

// One object on its way to a target: verify(), then deliver() or take_back().
class Restoring {
 public:
  Restoring(client::ObjectTarget& target, std::uint64_t held_max)
      : target_(target), held_max_(held_max) {}

  Status verify(FileObjects& objects, Rank rank) {
    BACKSTAY_TRY(match(*objects.of(rank)));
    BACKSTAY_ASSIGN(found_, objects.find(rank));
    std::vector<const format::ChunkEntry*> all;
    for (const format::ChunkEntry& chunk : found_.chunks) all.push_back(&chunk);
    return read_chunks(*found_.reader, all,
                       [this](const format::ChunkEntry& chunk, AlignedMemory& memory) {
                         hold(chunk, memory);
                         return Status();
                       });
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
  Status match(client::ObjectReader& object) {
    BACKSTAY_ASSIGN(auto tail, object.last(format::object_footer_bytes));
    if (tail.bytes.size() < format::object_footer_bytes) {
      return Error(Code::corrupt, "the object is shorter than its footer");
    }
    BACKSTAY_ASSIGN(const auto needed, target_.tail_bytes(tail.bytes, tail.object_bytes));
    BACKSTAY_ASSIGN(tail, object.last(needed));
    if (tail.bytes.size() != needed) {
      return Error(Code::corrupt, "the object is shorter than its table");
    }
    return target_.match_tail(tail.bytes, tail.object_bytes);
  }

  void hold(const format::ChunkEntry& chunk, AlignedMemory& memory) {
    if (held_bytes_ + chunk.length > held_max_) return again_.push_back(&chunk);
    held_bytes_ += chunk.length;
    Held& held = held_.emplace_back(Held{&chunk, std::move(memory), false});
    held.exchanged = target_.exchange(chunk.object_offset, bytes_of(held));
  }

  client::ObjectTarget& target_;
  const std::uint64_t held_max_;
  FoundObject found_;
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
    auto record = good_record(directory_, version, run);
    // Rank 0 has just seen it, so this host sees the directory late.
    if (!record.ok()) return Error(Code::io, record.error().message());
    objects.emplace(directory_.tier(), std::move(*record));
    return restoring.verify(*objects, static_cast<Rank>(group_.rank()));
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
  const bool damaged = why.code() == Code::corrupt || why.code() == Code::not_found;
  if (group_.rank() != 0 || !damaged) return;
  if (const Status aside = directory_.set_aside(version, why.message()); !aside.ok()) {
    tell_user(fmt::format("version {} is damaged and could not be set aside: {}", version,
                          aside.error().message()));
  }
}

}  // namespace backstay::strategy
