#include "simulated_run/reuse.h"

#include <algorithm>
#include <utility>

#include "format/names.h"
#include "store/catalog.h"
#include "store/needed_files.h"

namespace backstay::simulated {

namespace {

// One of three begins a chain.
bool reuses(VersionNumber version) { return version % 3 != 1; }

// Where the older version has that chunk; names its version in `all`. False: it has it not.
bool name(const agent::WriteChunk& wanted, const format::Manifest& older, store::OlderChunks& all) {
  const format::ObjectEntry* object = older.find(wanted.object);
  if (object == nullptr) return false;
  const auto chunks = older.chunks_of(*object);
  const auto same = std::ranges::find_if(chunks, [&](const format::ChunkEntry& chunk) {
    return chunk.object_offset == wanted.object_offset && chunk.length == wanted.length &&
           chunk.checksum == wanted.checksum;
  });
  if (same == chunks.end()) return false;
  const agent::FileOf file = store::file_with(older, *same);
  const format::Need need{file.version, file.run};
  auto place = std::ranges::lower_bound(all.needs, need.version, {}, &format::Need::version);
  if (place == all.needs.end() || *place != need) {
    place = all.needs.insert(place, need);
    const auto index = static_cast<std::uint32_t>(place - all.needs.begin()) + 1;
    for (format::ChunkEntry& one : all.chunks) one.need += one.need >= index ? 1 : 0;
  }
  format::ChunkEntry chunk = *same;
  chunk.need = static_cast<std::uint32_t>(place - all.needs.begin()) + 1;
  chunk.node = file.node;
  all.chunks.push_back(chunk);
  return true;
}

}  // namespace

ReusingStore::ReusingStore(const MakeTier& make_tier, PostEvent post_event)
    : tier_(make_tier()),
      post_event_(std::move(post_event)),
      store_(
          "job", make_tier,
          [this](agent::Event event) {
            const bool told = sealing_ && std::holds_alternative<agent::ChunkWritten>(event);
            if (!told) post_event_(std::move(event));
          },
          nullptr) {}

void ReusingStore::handle(agent::Command command) {
  if (const auto* open = std::get_if<agent::OpenVersion>(&command)) {
    opened_ = tier_.ok() && reuses(open->info.version) ? open->info.version : 0;
    aside_.clear();
  }
  const auto* chunk = std::get_if<agent::WriteChunk>(&command);
  if (chunk != nullptr && chunk->version == opened_) return put_aside(*chunk);
  auto* sealed = std::get_if<agent::SealVersion>(&command);
  if (sealed != nullptr && sealed->version == opened_) return seal(std::move(*sealed));
  store_.handle(std::move(command));
}

void ReusingStore::put_aside(const agent::WriteChunk& chunk) {
  Aside& aside = aside_.emplace_back(Aside{chunk, AlignedMemory(chunk.memory.size())});
  std::ranges::copy(chunk.memory, aside.memory.span().begin());
  aside.chunk.memory = aside.memory.span().first(chunk.memory.size());
  post_event_(agent::ChunkWritten{chunk.version, chunk.buffer, chunk.length});
}

void ReusingStore::seal(agent::SealVersion command) {
  sealing_ = true;
  const std::vector<format::Manifest> older = newest_recorded();
  for (const Aside& aside : aside_) {
    const bool named = std::ranges::any_of(older, [&](const format::Manifest& manifest) {
      return name(aside.chunk, manifest, command.older);
    });
    if (!named) store_.handle(aside.chunk);
  }
  needing_ += command.older.needs.empty() ? 0 : 1;
  store_.handle(std::move(command));
  sealing_ = false;
  opened_ = 0;
  aside_.clear();
}

// The parts of it that are here. While no newer one is recorded here nothing removes it.
std::vector<format::Manifest> ReusingStore::newest_recorded() {
  std::vector<format::Manifest> parts;
  const auto all = store::scan(**tier_, "job");
  if (!all.ok()) return parts;
  const auto newest = std::find_if(all->rbegin(), all->rend(),
                                   [](const agent::StoredVersion& one) { return one.good(); });
  if (newest == all->rend() || newest->version >= opened_) return parts;
  const std::string folder = format::version_folder("job", newest->version);
  const auto names = (*tier_)->list(folder);
  if (!names.ok()) return parts;
  for (const std::string& file : *names) {
    if (!format::node_of_manifest(file)) continue;
    const auto bytes = (*tier_)->get(folder + "/" + file, format::manifest_bytes_max);
    if (!bytes.ok()) continue;
    auto manifest = format::decode_manifest(*bytes);
    if (manifest.ok()) parts.push_back(std::move(*manifest));
  }
  return parts;
}

}  // namespace backstay::simulated
