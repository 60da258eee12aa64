// A node's part of a version, written by the store as an agent has it written.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "agent/disk/store.h"
#include "base/aligned_memory.h"
#include "base/checksum.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::agent::testing {

inline store::OlderChunks first_chunk_of(tier::Tier& tier, const FileOf& file, std::uint64_t at) {
  const std::string folder = format::version_folder("job", file.version);
  const auto bytes = tier.get(format::manifest_name(folder, file.node), 1 << 20);
  format::ChunkEntry chunk = format::decode_manifest(bytes.value()).value().chunks.at(0);
  chunk.object_offset = at;
  chunk.need = 1;
  chunk.node = file.node;
  return {{{file.version, file.run}}, {chunk}};
}

// One object, of the rank with the node's number, whose content depends on node, version and place.
// Its last chunk, one more, lies in the segment of `older`, if that is given. Returns the record.
inline format::CommitRecord write_part(const std::function<std::unique_ptr<tier::Tier>()>& tier,
                                       const VersionInfo& info, std::uint32_t chunks,
                                       const std::optional<FileOf>& older = {}) {
  std::optional<format::CommitRecord> record;
  StoreWorker worker(
      "job", [&]() -> Result<std::unique_ptr<tier::Tier>> { return tier(); },
      [&](const Event& event) {
        if (const auto* done = std::get_if<VersionSealed>(&event)) record = done->stored.record;
        if (const auto* done = std::get_if<VersionRecorded>(&event)) record = done->stored.record;
      },
      nullptr);
  const NodeId node = info.node;
  worker.handle(OpenVersion{info});
  AlignedMemory memory(info.chunk_bytes_max);
  std::uint64_t bytes = 0;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::uint32_t length = chunk % 3 == 2 ? 5000 : info.chunk_bytes_max;
    for (std::size_t at = 0; at < memory.span().size(); ++at) {
      memory.span()[at] = static_cast<std::byte>(node * 37 + info.version * 11 + chunk + at);
    }
    worker.handle(WriteChunk{info.version, node, chunk,
                             memory.span().first(format::slot_bytes(length)), length, bytes,
                             checksum(memory.span().first(length))});
    bytes += length;
    while (worker.busy()) worker.reap(true);
  }
  SealVersion seal{info.version, 42, {}};
  if (older) seal.older = first_chunk_of(*tier(), *older, bytes);
  for (const format::ChunkEntry& chunk : seal.older.chunks) bytes += chunk.length;
  seal.object_bytes = {{node, bytes}};
  worker.handle(std::move(seal));
  EXPECT_TRUE(record.has_value());
  record->level = Level::local;
  worker.handle(RecordVersion{*record});
  return *record;
}

}  // namespace backstay::agent::testing
