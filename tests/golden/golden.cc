#include "golden/golden.h"

#include <stdexcept>

#include "base/checksum.h"
#include "format/manifest.h"
#include "format/segment.h"
#include "format/streams.h"
#include "support/samples.h"

namespace backstay::test {

namespace {

using format::ElementType;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint32_t chunk_bytes_max = 4096;
constexpr VersionNumber version = 12;
constexpr RunId run = 0x0102030405060708;
constexpr std::uint64_t captured_ns = 1'795'000'000'000'000'000;

template <typename T>
void put(Buffer& out, T value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), raw.begin(), raw.end());
}

void put_typed(Buffer& out, ElementType type, std::uint64_t v) {
  switch (type) {
    case ElementType::byte:
    case ElementType::i8:
    case ElementType::u8: return put(out, static_cast<std::uint8_t>(v));
    case ElementType::i16:
    case ElementType::u16: return put(out, static_cast<std::uint16_t>(v));
    case ElementType::i32:
    case ElementType::u32: return put(out, static_cast<std::uint32_t>(v));
    case ElementType::i64:
    case ElementType::u64: return put(out, v);
    case ElementType::f32: return put(out, static_cast<float>(v) / 2);
    case ElementType::f64: return put(out, static_cast<double>(v) / 2);
    case ElementType::c64:
      put(out, static_cast<float>(v) / 2);
      return put(out, -static_cast<float>(v));
    case ElementType::c128:
      put(out, static_cast<double>(v) / 2);
      return put(out, -static_cast<double>(v));
  }
}

GoldenRegion region(const std::string& name, ElementType type, Shape shape) {
  GoldenRegion out;
  out.region.name = name;
  out.region.type = type;
  out.region.bytes = format::element_bytes(type);
  for (const auto count : shape) out.region.bytes *= count;
  out.region.shape = std::move(shape);
  return out;
}

GoldenRegion every_type(std::uint32_t rank, std::uint8_t number) {
  const auto type = static_cast<ElementType>(number);
  auto out = region("all." + std::string(format::element_name(type)), type, {5U + number});
  for (std::uint64_t k = 0; k < 5U + number; ++k) {
    put_typed(out.payload, type, 3 * k + rank + number);
  }
  return out;
}

template <typename T>
GoldenRegion block(const std::string& name, ElementType type, Shape shape, Shape global,
                   Shape offset) {
  auto out = region(name, type, shape);
  for (std::uint64_t row = 0; row < shape[0]; ++row) {
    for (std::uint64_t column = 0; column < shape[1]; ++column) {
      put(out.payload, static_cast<T>(100 * (offset[0] + row) + offset[1] + column));
    }
  }
  out.region.global_shape = std::move(global);
  out.region.global_offset = std::move(offset);
  return out;
}

GoldenRegion file(std::uint32_t rank) {
  const std::uint64_t bytes = 300 + 10 * rank;
  auto out = region("log." + std::to_string(rank), ElementType::byte, {bytes});
  out.region.kind = format::RegionKind::file;
  out.region.file_mode = 0640;
  for (std::uint64_t k = 0; k < bytes; ++k) {
    out.payload.push_back(static_cast<std::byte>((k + rank) % 251));
  }
  return out;
}

// Chunks of all ranks in turn, the last first, as buffers might have come.
void add_chunks(format::Manifest& manifest, Buffer& segment, const std::vector<Buffer>& objects) {
  const auto ranks = static_cast<Rank>(objects.size());
  for (std::uint64_t at = 0;; at += chunk_bytes_max) {
    bool any = false;
    for (Rank rank = ranks; rank-- > 0;) {
      const Bytes object = objects[rank];
      if (at >= object.size()) continue;
      any = true;
      const Bytes part =
          object.subspan(at, std::min<std::size_t>(chunk_bytes_max, object.size() - at));
      manifest.chunks.push_back(
          {rank, static_cast<std::uint32_t>(part.size()), at, segment.size(), checksum(part)});
      segment.insert(segment.end(), part.begin(), part.end());
      segment.resize(format::slot_bytes(segment.size()));
    }
    if (!any) return;
  }
}

}  // namespace

std::vector<GoldenRegion> golden_regions(std::uint32_t rank) {
  std::vector<GoldenRegion> out;
  for (std::uint8_t type = 1; type <= 13; ++type) out.push_back(every_type(rank, type));
  out.push_back(region("u", ElementType::f64, {1500}));
  for (int k = 0; k < 1500; ++k) put(out.back().payload, k / 4.0 + rank);
  out.push_back(block<double>("rows", ElementType::f64, {rank == 0 ? 4U : 2U, 8}, {6, 8},
                              {rank == 0 ? 0U : 4U, 0}));
  out.push_back(block<std::int32_t>("columns", ElementType::i32, {3, rank == 0 ? 2U : 3U}, {3, 5},
                                    {0, rank == 0 ? 0U : 2U}));
  out.push_back(region("empty", ElementType::u16, {0, 3}));
  if (rank == 1) {
    out.push_back(region("only on 1 \xE2\x9C\x93", ElementType::i64, {2}));
    put(out.back().payload, std::int64_t{-1});
    put(out.back().payload, std::int64_t{-2});
  }
  out.push_back(file(rank));
  return out;
}

Buffer golden_object(std::uint32_t rank) { return golden_object_of(golden_regions(rank)); }

Buffer golden_object_of(const std::vector<GoldenRegion>& contents) {
  std::vector<format::Region> regions;
  for (const auto& entry : contents) regions.push_back(entry.region);
  const std::uint64_t table_offset = format::lay_out(regions);
  Buffer object(table_offset);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    std::copy(contents[i].payload.begin(), contents[i].payload.end(),
              object.begin() + static_cast<std::ptrdiff_t>(regions[i].offset));
  }
  const Buffer tail = format::encode_tail(regions, table_offset);
  object.insert(object.end(), tail.begin(), tail.end());
  return object;
}

std::map<std::string, Buffer> golden_files() { return golden_files_of("golden"); }

std::vector<GoldenRegion> golden_stream_regions() {
  const std::vector<format::Stream> streams = example_streams();
  const std::string text = example_stream_text();
  GoldenRegion all;
  const auto raw = std::as_bytes(std::span(text));
  all.payload.assign(raw.begin(), raw.end());
  const Buffer index = format::encode_streams(streams, text.size());
  all.payload.insert(all.payload.end(), index.begin(), index.end());
  all.region = format::streams_region(all.payload.size());
  std::vector<GoldenRegion> out = {all};
  for (GoldenRegion& one : golden_regions(0)) {
    if (one.region.name == "u") out.push_back(std::move(one));
  }
  return out;
}

std::map<std::string, Buffer> golden_stream_files() {
  return golden_files_of("streams", {golden_object_of(golden_stream_regions())});
}

std::map<std::string, Buffer> golden_files_of(const std::string& job) {
  return golden_files_of(job, {golden_object(0), golden_object(1)});
}

std::map<std::string, Buffer> golden_files_of(const std::string& job,
                                              const std::vector<Buffer>& objects) {
  Buffer segment = encode(format::SegmentHeader{
      .job = job, .node = 0, .version = version, .run = run, .created_ns = captured_ns});
  format::Manifest manifest;
  manifest.job = job;
  manifest.version = version;
  manifest.run = run;
  manifest.ranks = static_cast<std::uint32_t>(objects.size());
  manifest.chunk_bytes_max = chunk_bytes_max;
  manifest.captured_ns = captured_ns;
  add_chunks(manifest, segment, objects);
  manifest.segment_bytes = segment.size();
  std::vector<std::pair<Rank, std::uint64_t>> sizes;
  std::uint64_t payload = 0;
  for (const Buffer& object : objects) {
    sizes.emplace_back(static_cast<Rank>(sizes.size()), object.size());
    payload += object.size();
  }
  if (!build_index(manifest, sizes).ok()) throw std::logic_error("golden manifest is wrong");
  const Buffer encoded = encode(manifest);
  const format::CommitRecord commit{.job = job,
                                    .version = version,
                                    .run = run,
                                    .ranks = manifest.ranks,
                                    .payload_bytes = payload,
                                    .manifests_sum = format::manifest_digest(encoded),
                                    .captured_ns = captured_ns,
                                    .committed_ns = captured_ns + 750'000'000};
  const std::string folder = job + "/v0000000000000012/";
  return {{folder + "node-0000000.segment", segment},
          {folder + "node-0000000.manifest", encoded},
          {folder + "commit.local", encode(commit)}};
}

}  // namespace backstay::test
