#include "golden/captured.h"

#include <stdexcept>

#include "base/checksum.h"
#include "format/manifest.h"
#include "format/segment.h"
#include "golden/golden.h"

namespace backstay::test {

namespace {

using format::ObjectId;

constexpr std::uint32_t chunk_bytes_max = 4096;
constexpr RunId run_of_13 = 0x0102030405060709;
constexpr std::uint64_t captured_ns = 1'795'000'060'000'000'000;
constexpr const char* job = "captured";
constexpr std::uint64_t payload_of_rank = 8000, payload_of_writer = 5000;

struct Version12 {
  Buffer segment;
  format::Manifest manifest;
};

// Where version 12 has the same bytes of the same object, or nullptr.
const format::ChunkEntry* unchanged(const Version12& before, const ObjectId& id, std::uint64_t at,
                                    Bytes part) {
  const auto* object = before.manifest.find(id);
  if (object == nullptr) return nullptr;
  for (const format::ChunkEntry& chunk : before.manifest.chunks_of(*object)) {
    if (chunk.object_offset != at || chunk.length != part.size()) continue;
    const Bytes then = Bytes(before.segment).subspan(chunk.segment_offset, chunk.length);
    return std::equal(then.begin(), then.end(), part.begin()) ? &chunk : nullptr;
  }
  return nullptr;
}

void add_object(const Version12& before, const ObjectId& id, Bytes object,
                format::Manifest& manifest, Buffer& segment) {
  for (std::uint64_t at = 0; at < object.size(); at += chunk_bytes_max) {
    const Bytes part =
        object.subspan(at, std::min<std::size_t>(chunk_bytes_max, object.size() - at));
    const auto length = static_cast<std::uint32_t>(part.size());
    if (const auto* old = unchanged(before, id, at, part)) {
      manifest.chunks.push_back({id, length, at, old->segment_offset, old->checksum, 1, 0});
      continue;
    }
    manifest.chunks.push_back({id, length, at, segment.size(), checksum(part)});
    segment.insert(segment.end(), part.begin(), part.end());
    segment.resize(format::slot_bytes(segment.size()));
  }
}

format::CapturedFile file(std::string path, std::uint32_t mode, std::uint64_t bytes,
                          std::uint64_t second, std::vector<format::Extent> extents) {
  format::CapturedFile made;
  made.path = std::move(path);
  made.mode = mode;
  made.bytes = bytes;
  made.placed_ns = captured_ns - (60 - second) * 1'000'000'000;
  made.modified = {static_cast<std::int64_t>(1'795'000'000 + second), 250'000'000};
  made.accessed = {-1, 999'999'999};
  made.extents = std::move(extents);
  return made;
}

}  // namespace

std::vector<format::CapturedFile> golden_captured(const ObjectId& object) {
  if (object == golden_files_of_rank) {
    return {file("/run/heat/empty", 0600, 0, 5, {}),
            file("/run/heat/out.bin", 0640, 10'000, 20,
                 {{0, 6000, 0}, {9000, 1000, 6000}, {1000, 500, 7000}, {1400, 500, 7500}})};
  }
  return {file("/run/heat/log \xFF.txt", 0644, 3000, 10, {{0, 3000, 1000}}),
          file("/run/heat/out.bin", 0666, 1000, 15, {{0, 1000, 0}}),
          file("/run/sparse", 0444, 1 << 20, 30, {{1 << 19, 1000, 4000}})};
}

std::byte golden_byte(const ObjectId& object, std::uint64_t at) {
  return static_cast<std::byte>((7 * at + (object == golden_files_of_rank ? 1 : 0)) % 251);
}

Buffer golden_captured_object(const ObjectId& object) {
  const std::uint64_t payload =
      object == golden_files_of_rank ? payload_of_rank : payload_of_writer;
  Buffer bytes;
  for (std::uint64_t at = 0; at < payload; ++at) bytes.push_back(golden_byte(object, at));
  bytes.resize(format::aligned_in_object(payload));
  const Buffer tail = format::encode_files(golden_captured(object), bytes.size());
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  return bytes;
}

Buffer golden_object_13(std::uint32_t rank) {
  auto contents = golden_regions(rank);
  for (GoldenRegion& content : contents) {
    if (rank != 1 || content.region.name != "u") continue;
    content.payload.clear();
    for (int k = 0; k < 1500; ++k) {
      const double value = k / 4.0 + 1001;
      const auto raw = std::as_bytes(std::span(&value, 1));
      content.payload.insert(content.payload.end(), raw.begin(), raw.end());
    }
  }
  return golden_object_of(contents);
}

std::map<std::string, Buffer> golden_captured_files() {
  std::map<std::string, Buffer> files = golden_files_of(job);
  const std::string folder_12 = std::string(job) + "/v0000000000000012/";
  const Version12 before{files.at(folder_12 + "node-0000000.segment"),
                         *format::decode_manifest(files.at(folder_12 + "node-0000000.manifest"))};
  Buffer segment = encode(format::SegmentHeader{
      .job = job, .node = 0, .version = 13, .run = run_of_13, .created_ns = captured_ns});
  format::Manifest manifest;
  manifest.job = job;
  manifest.version = 13;
  manifest.run = run_of_13;
  manifest.ranks = golden_ranks;
  manifest.chunk_bytes_max = chunk_bytes_max;
  manifest.captured_ns = captured_ns;
  manifest.needs = {{12, before.manifest.run}};
  std::vector<std::pair<ObjectId, std::uint64_t>> sizes;
  const auto add = [&](const ObjectId& id, const Buffer& object) {
    add_object(before, id, object, manifest, segment);
    sizes.emplace_back(id, object.size());
  };
  for (const ObjectId& id : {golden_files_of_writer, golden_files_of_rank}) {
    add(id, golden_captured_object(id));
  }
  for (Rank rank = 0; rank < golden_ranks; ++rank) add(rank, golden_object_13(rank));
  manifest.segment_bytes = segment.size();
  const Status good = index_objects(manifest, sizes);
  if (!good.ok()) throw std::logic_error(good.error().to_string());
  const Buffer encoded = encode(manifest);
  format::CommitRecord commit = record_of(manifest, encoded);
  commit.committed_ns = captured_ns + 750'000'000;
  const std::string folder = std::string(job) + "/v0000000000000013/";
  files[folder + "node-0000000.segment"] = segment;
  files[folder + "node-0000000.manifest"] = encoded;
  files[folder + "commit.local"] = encode(commit);
  return files;
}

}  // namespace backstay::test
