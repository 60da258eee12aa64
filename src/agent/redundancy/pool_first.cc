#include "agent/redundancy/pool_first.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/segment.h"
#include "store/needed_files.h"

namespace backstay::agent {

void PoolFirst::post(PeerFileCommand command) {
  auto* piece = std::get_if<ReadPiece>(&command);
  if (piece != nullptr && copy(*piece)) command = Compute{[] {}, std::move(piece->done)};
  peer_files_.post(std::move(command));
}

bool PoolFirst::copy(const ReadPiece& piece) {
  const auto found = state_.memory.find(piece.file.version);
  const VersionRow* row = state_.versions.find(piece.file.version);
  const bool on_disk = row != nullptr && row->disk;  // else it was removed: the disk says so
  if (found == state_.memory.end() || !on_disk) return false;
  const MemoryVersion* version = &found->second;
  if (version->part == nullptr || piece.file != store::file_of(*version->part)) return false;
  std::uint64_t at = piece.offset;
  const std::uint64_t end = piece.offset + piece.memory.size();
  const auto take = [&](std::uint64_t begin, Bytes payload) {  // with its padding
    const std::uint64_t skip = at - begin;
    const std::uint64_t count = std::min(format::slot_bytes(payload.size()) - skip, end - at);
    const Bytes rest = payload.subspan(std::min(skip, payload.size()));
    const std::uint64_t bytes = std::min(count, rest.size());
    std::byte* to = piece.memory.data() + (at - piece.offset);
    std::memcpy(to, rest.data(), bytes);
    std::memset(to + bytes, 0, count - bytes);
    at += count;
  };
  if (at < format::segment_header_bytes) take(0, format::encode(version->header));
  auto slot = std::ranges::upper_bound(version->slots, at, {}, &MemoryVersion::Slot::offset);
  if (at < end && slot != version->slots.begin()) --slot;
  for (; at < end && slot != version->slots.end(); ++slot) {
    const HeldChunk& chunk = version->chunks[slot->chunk];
    const std::uint64_t bytes = format::slot_bytes(chunk.in_pool.length);
    if (chunk.released || at < slot->offset || at - slot->offset >= bytes) return false;
    take(slot->offset, state_.pool.buffer(chunk.in_pool.buffer).first(chunk.in_pool.length));
  }
  return at == end;
}

}  // namespace backstay::agent
