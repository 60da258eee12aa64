#include "agent/version/job_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/needed_files.h"

namespace backstay::agent {

void MemoryVersion::sealed(const Pool& pool, const format::Manifest& manifest,
                           const format::SegmentHeader& header) {
  std::map<std::pair<format::ObjectId, std::uint64_t>, std::uint64_t> offsets;
  for (const format::ChunkEntry& chunk : manifest.chunks) {
    if (chunk.here()) offsets[{chunk.object, chunk.object_offset}] = chunk.segment_offset;
  }
  std::vector<PooledPart::Slot> slots;
  for (const HeldChunk& chunk : chunks) {
    const wire::ChunkInPool& held = chunk.in_pool;
    if (chunk.released) continue;
    const auto at = offsets.find({chunk.object, held.object_offset});
    if (at == offsets.end()) continue;  // an older version has the same bytes
    slots.push_back({at->second, held.length, held.buffer, pool.returns(held.buffer)});
  }
  part = std::make_shared<PooledPart>(pool, store::file_of(manifest), header, std::move(slots));
}

namespace {

// Bytes that may be dropped: the version is on the tier, or nothing about it was announced yet
// and these bytes are in its segment. Once a version was called captured, every byte of it stays in
// the pool until it is local: writing may still fail.
bool droppable(const MemoryVersion& version, const HeldChunk& chunk, bool safe) {
  if (chunk.released || chunk.in_store || version.pins > 0) return false;
  return safe || (chunk.written && !version.captured && !version.failed);
}

void drop(Pool& pool, MemoryVersion& version, HeldChunk& chunk) {
  pool.give_back(chunk.in_pool.buffer);
  chunk.released = true;
  version.whole = false;
}

}  // namespace

std::shared_ptr<const PooledPart> JobState::pooled(const store::FileOf& file) const {
  const auto found = memory.find(file.version);
  if (found == memory.end() || on_disk(file.version) == nullptr) return nullptr;
  const auto& part = found->second.part;
  return part != nullptr && part->file() == file ? part : nullptr;
}

void JobState::record(std::string_view event, nlohmann::json fields) const {
  fields["event"] = event;
  Counted& sum = counted[std::string(event)];
  ++sum.events;
  if (const auto bytes = fields.find("bytes"); bytes != fields.end() && bytes->is_number()) {
    sum.bytes += bytes->get<std::uint64_t>();
  }
  if (const auto seconds = fields.find("seconds");
      seconds != fields.end() && seconds->is_number()) {
    sum.seconds += seconds->get<double>();
  }
  fields["t_ns"] = clock.wall_ns();
  fields["job"] = name;
  fields["run"] = fmt::format("{:016x}", run);
  fields["node"] = node;
  // A message may quote a file name that is not UTF-8.
  events.append(fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void JobState::take_refusal(Code code, const std::string& why) {
  if (code == Code::again) {
    cannot_save = why;
    return record("cannot_save", {{"why", why}});
  }
  refused = {Error(code, why), clock.monotonic_ns()};
  record("refused", {{"code", code_name(code)}, {"why", why}});
}

void JobState::forget_refusals() {
  refused.reset();
  cannot_save.clear();
}

void JobState::release(VersionNumber number) {
  const auto found = memory.find(number);
  if (found == memory.end()) return;
  if (found->second.pins > 0) {
    found->second.dropping = true;
    return;
  }
  bool left = false;
  for (HeldChunk& chunk : found->second.chunks) {
    if (!chunk.released && !chunk.in_store) drop(pool, found->second, chunk);
    left = left || !chunk.released;
  }
  found->second.whole = false;
  found->second.dropping = true;
  if (!left) memory.erase(found);
}

void JobState::forget_if_empty(VersionNumber number) {
  const auto found = memory.find(number);
  if (found == memory.end() || !is_safe(found->second)) return;
  const MemoryVersion& version = found->second;
  for (std::size_t index = version.first_held; index < version.chunks.size(); ++index) {
    if (!version.chunks[index].released) return;
  }
  memory.erase(found);
}

bool JobState::release_one_written() {
  for (auto& [number, version] : memory) {
    auto& chunks = version.chunks;
    const bool safe = is_safe(version);
    while (version.first_held < chunks.size() && chunks[version.first_held].released) {
      ++version.first_held;
    }
    for (std::size_t index = version.first_held; index < chunks.size(); ++index) {
      HeldChunk& chunk = chunks[index];
      if (!droppable(version, chunk, safe)) continue;
      drop(pool, version, chunk);
      forget_if_empty(number);
      return true;
    }
  }
  return false;
}

void JobState::make_room_at_home(const RankLink& link, std::uint32_t wanted) {
  const HomeRange home = link.home;
  wanted = std::min(wanted, home.count);
  std::uint32_t free = pool.free_count_in(home);
  for (auto at = memory.begin(); at != memory.end() && free < wanted;) {
    MemoryVersion& version = at->second;
    const bool safe = is_safe(version);
    for (HeldChunk& chunk : version.chunks) {
      if (free >= wanted || !safe) break;
      const bool at_home = chunk.in_pool.buffer - home.first < home.count;
      if (chunk.object != link.rank || !at_home) continue;
      if (!droppable(version, chunk, safe)) continue;
      drop(pool, version, chunk);
      ++free;
    }
    const VersionNumber number = at->first;
    ++at;
    forget_if_empty(number);
  }
}

std::uint32_t JobState::buffers_available() const {
  std::uint32_t count = pool.free_count();
  for (const auto& [number, version] : memory) {
    const bool safe = is_safe(version);
    for (const HeldChunk& chunk : version.chunks) count += droppable(version, chunk, safe) ? 1 : 0;
  }
  return count;
}

std::optional<std::uint32_t> JobState::take_buffer(HomeRange home) {
  if (auto index = pool.take_from(home)) return index;
  if (auto index = pool.take()) return index;
  if (!release_one_written()) return std::nullopt;
  return pool.take();
}

}  // namespace backstay::agent
