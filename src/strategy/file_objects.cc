#include "strategy/file_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/segment.h"
#include "store/catalog.h"

namespace backstay::strategy {

namespace {

constexpr unsigned reads_max = 8;      // at once
constexpr std::size_t parts_max = 16;  // open: descriptors are few
constexpr std::uint64_t usual_piece_bytes = std::uint64_t{4} << 20;

}  // namespace

Status read_chunks(store::PartReader& reader, const std::vector<const format::ChunkEntry*>& chunks,
                   const TakeChunk& take) {
  struct Slot {
    AlignedMemory memory;
    const format::ChunkEntry* chunk = nullptr;
  };
  std::map<std::uint64_t, Slot> slots;  // by tag; of those in flight
  std::vector<AlignedMemory> idle;
  Status status;
  std::size_t next = 0;
  const unsigned depth = std::min(reads_max, reader.depth());
  while (!slots.empty() || (status.ok() && next < chunks.size())) {
    while (status.ok() && slots.size() < depth && next < chunks.size()) {
      const format::ChunkEntry* const chunk = chunks[next];
      const std::uint64_t bytes = format::slot_bytes(chunk->length);
      if (idle.empty() || idle.back().span().size() < bytes) idle.emplace_back(bytes);
      const auto at = slots.emplace(next++, Slot{std::move(idle.back()), chunk}).first;
      idle.pop_back();
      reader.start(*chunk, at->second.memory.span().first(bytes), at->first);
    }
    for (const tier::Done& done : reader.reap(/*wait=*/true)) {
      const auto at = slots.find(done.tag);
      Slot slot = std::move(at->second);
      slots.erase(at);
      if (status.ok()) status = done.status;
      if (status.ok()) status = take(*slot.chunk, slot.memory);
      if (slot.memory.span().data() != nullptr) idle.push_back(std::move(slot.memory));
    }
  }
  return status;
}

Result<FileObjects::Part*> FileObjects::part(NodeId node) {
  if (parts_.size() > parts_max && !parts_.contains(node)) parts_.clear();
  auto& kept = parts_[node];
  if (kept != nullptr) return kept.get();
  BACKSTAY_ASSIGN(auto manifest, store::read_manifest(tier_, record_.job, record_, node));
  auto made = std::make_unique<Part>(Part{std::move(manifest), nullptr});
  made->reader = std::make_unique<store::PartReader>(std::vector{&tier_}, made->manifest);
  BACKSTAY_TRY(made->reader->open());
  kept = std::move(made);
  return kept.get();
}

Result<FoundObject> FileObjects::find(Rank rank) {
  const std::uint64_t likely = std::uint64_t{rank} * record_.nodes / std::max(record_.ranks, 1U);
  for (std::uint32_t step = 0; step < record_.nodes; ++step) {
    const auto node = static_cast<NodeId>((likely + step) % record_.nodes);
    BACKSTAY_ASSIGN(Part* const found, part(node));
    const format::ObjectEntry* const object = found->manifest.find(rank);
    if (object == nullptr) continue;
    return FoundObject{found->reader.get(), object, found->manifest.chunks_of(*object)};
  }
  return Error(Code::corrupt,
               fmt::format("no part of the version has the object of rank {}", rank));
}

namespace {

class FileObject final : public client::ObjectReader {
 public:
  FileObject(FileObjects& objects, Rank rank) : objects_(objects), rank_(rank) {}

  Status range(std::uint64_t begin, std::uint64_t bytes, Take take) override {
    BACKSTAY_ASSIGN(const FoundObject found, objects_.find(rank_));
    const std::uint64_t end = begin + bytes;
    std::vector<const format::ChunkEntry*> wanted;
    for (const format::ChunkEntry& chunk : found.chunks) {
      const bool apart = chunk.object_offset >= end || chunk.object_offset + chunk.length <= begin;
      if (!apart) wanted.push_back(&chunk);
    }
    return read_chunks(*found.reader, wanted,
                       [&](const format::ChunkEntry& chunk, AlignedMemory& memory) {
                         const std::uint64_t at = chunk.object_offset;
                         const std::uint64_t from = std::max(at, begin);
                         const std::uint64_t to = std::min(at + chunk.length, end);
                         return take(from, memory.span().subspan(from - at, to - from));
                       });
  }

  Result<Last> last(std::uint64_t bytes) override {
    BACKSTAY_ASSIGN(const FoundObject found, objects_.find(rank_));
    Last tail{Buffer(std::min(bytes, found.object->bytes)), found.object->bytes};
    const std::uint64_t begin = tail.object_bytes - tail.bytes.size();
    BACKSTAY_TRY(ObjectReader::range(begin, tail.bytes));
    return tail;
  }

 private:
  FileObjects& objects_;
  const Rank rank_;
};

}  // namespace

std::unique_ptr<client::ObjectReader> FileObjects::of(Rank rank) {
  return std::make_unique<FileObject>(*this, rank);
}

std::uint64_t FileObjects::piece_bytes() const {
  return parts_.empty() ? usual_piece_bytes : parts_.begin()->second->manifest.chunk_bytes_max;
}

}  // namespace backstay::strategy
