#include "agent/checkpoint/older.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/segment.h"

namespace backstay::agent {

namespace {

Parts parts_of(const JobState& state, VersionNumber version) {
  const auto& newest = state.newest_part;
  if (newest && newest->version == version && newest->run == state.run) return {newest};
  const Parts& before = state.brought_back;
  return !before.empty() && before.front()->version == version ? before : Parts();
}

const format::Manifest& part_with(const Parts& base, const format::ObjectId& object) {
  const auto has = [&](const auto& part) { return part->find(object) != nullptr; };
  const auto found = std::ranges::find_if(base, has);
  return found == base.end() ? *base.front() : **found;
}

}  // namespace

Result<Parts> find_base(const JobState& state, VersionNumber version) {
  const auto none = [version](std::string_view why) {
    return Error(Code::again, fmt::format("nothing of version {} can be kept: {}", version, why));
  };
  Parts parts = parts_of(state, version);
  if (parts.empty()) return none("it is not the one that this agent wrote or brought back last");
  const VersionRow* row = state.versions.find(version);
  const bool local = row != nullptr && row->good() && row->is_of(parts.front()->run);
  if (!local) return none("it is not local");
  if (is_leaving(state.versions, version)) return none("it is just being removed");
  return parts;
}

Result<OlderChunk> keep(const Parts& parts, const format::ObjectId& object,
                        const wire::KeptChunk& chunk, std::uint64_t offset) {
  const format::Manifest& base = part_with(parts, object);
  const format::ObjectEntry* entry = base.find(object);
  std::span<const format::ChunkEntry> all;
  if (entry != nullptr) all = base.chunks_of(*entry);
  const auto found =
      std::ranges::lower_bound(all, chunk.offset, {}, &format::ChunkEntry::object_offset);
  if (found == all.end() || found->object_offset != chunk.offset || found->length != chunk.length ||
      chunk.length % format::segment_alignment != 0) {
    return Error(Code::invalid, fmt::format("version {} has no chunk of {} bytes at {}",
                                            base.version, chunk.length, chunk.offset));
  }
  OlderChunk kept{{base.version, base.run}, *found};
  if (found->here()) {
    kept.chunk.node = base.node;
  } else {
    kept.in = base.needs[found->need - 1];
  }
  kept.chunk.object_offset = offset;
  kept.chunk.need = 0;
  return kept;
}

Result<std::vector<format::Need>> needs_on(const JobState& state, const Parts& parts) {
  if (state.nodes == 1) return std::vector<format::Need>();
  const format::Manifest& base = *parts.front();
  const format::Need itself{base.version, base.run};
  const auto older = state.versions.needs_of({base.version, base.run});
  auto needs = format::both_needs(older, std::span(&itself, 1));
  if (needs.size() <= format::needs_max) return needs;
  return Error(Code::again,
               fmt::format("nothing of version {} can be kept: it would be the {}th version of one "
                           "chain",
                           base.version, needs.size() + 1));
}

store::OlderChunks older_chunks(const std::vector<OlderChunk>& chunks) {
  store::OlderChunks out;
  for (const OlderChunk& one : chunks) out.needs.push_back(one.in);
  std::ranges::sort(out.needs, {}, &format::Need::version);
  out.needs.erase(std::unique(out.needs.begin(), out.needs.end()), out.needs.end());
  for (const OlderChunk& one : chunks) {
    const auto need = std::ranges::find(out.needs, one.in);
    out.chunks.push_back(one.chunk);
    out.chunks.back().need = static_cast<std::uint32_t>(need - out.needs.begin()) + 1;
  }
  return out;
}

}  // namespace backstay::agent
