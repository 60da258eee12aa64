#include "support/samples.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace backstay::test {

namespace {

// Samples must be good; anything else is a defect of the tests.
void must(const Status& status) {
  if (!status.ok()) throw std::logic_error("bad sample: " + status.error().to_string());
}

format::Manifest empty_manifest() {
  format::Manifest manifest;
  manifest.job = "heat";
  manifest.node = 3;
  manifest.version = 12;
  manifest.run = 0x1122334455667788;
  manifest.segment_bytes = format::segment_header_bytes;
  manifest.nodes = 7;
  manifest.ranks = 64;
  manifest.chunk_bytes_max = 4 << 20;
  manifest.captured_ns = 1'795'000'000'000'000'000;
  return manifest;
}

void place_chunks(Random& random, format::Manifest& manifest) {
  std::shuffle(manifest.chunks.begin(), manifest.chunks.end(), random.engine());
  for (format::ChunkEntry& chunk : manifest.chunks) {
    if (!chunk.here()) continue;
    if (random.between(0, 3) == 0) manifest.segment_bytes += format::segment_alignment;
    chunk.segment_offset = manifest.segment_bytes;
    manifest.segment_bytes += format::slot_bytes(chunk.length);
  }
}

std::vector<std::uint64_t> random_dims(Random& random, std::size_t dims, std::uint64_t max) {
  std::vector<std::uint64_t> shape(dims);
  for (auto& count : shape) count = random.between(0, max);
  return shape;
}

format::Region random_array(Random& random, const std::string& name) {
  format::Region region;
  region.name = name;
  region.type = static_cast<format::ElementType>(random.between(1, 13));
  region.shape = random_dims(random, random.between(1, format::dims_max), 6);
  region.bytes = format::element_bytes(region.type);
  for (const auto count : region.shape) region.bytes *= count;
  if (random.coin()) {
    for (const auto count : region.shape) {
      region.global_offset.push_back(random.between(0, 9));
      region.global_shape.push_back(region.global_offset.back() + count + random.between(0, 9));
    }
  }
  return region;
}

format::Region random_file(Random& random, const std::string& name) {
  format::Region region;
  region.name = name;
  region.kind = format::RegionKind::file;
  region.file_mode = static_cast<std::uint32_t>(random.between(0, 07777));
  region.bytes = random.between(0, 5000);
  region.shape = {region.bytes};
  return region;
}

format::ObjectId random_id(Random& random, const format::Manifest& manifest) {
  const auto kind = static_cast<format::ObjectKind>(random.between(1, 4));
  const bool writer = kind != format::ObjectKind::regions && random.coin();
  const std::uint64_t number = random.between(0, writer ? ~0U : manifest.ranks - 1);
  return {writer ? format::OwnerKind::writer : format::OwnerKind::rank,
          static_cast<std::uint32_t>(number), kind};
}

// The objects' chunks in an older version, where the manifest is to have needs.
void lay_elsewhere(Random& random, format::Manifest& manifest) {
  std::vector<format::Need> needs(random.between(0, 3));
  for (std::size_t i = 0; i < needs.size(); ++i) needs[i] = {3 * i + 2, random.between(0, ~0ULL)};
  std::vector<std::size_t> uses(needs.size());
  for (format::ChunkEntry& chunk : manifest.chunks) {
    chunk.need = static_cast<std::uint32_t>(random.between(0, needs.size()));
    if (chunk.here()) continue;
    chunk.node = static_cast<NodeId>(random.between(0, 9));
    chunk.segment_offset = 4096 * random.between(1, 1ULL << 40);
    ++uses[chunk.need - 1];
  }
  // Only those that are used.
  std::vector<std::uint32_t> index(needs.size() + 1);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (uses[i] > 0) manifest.needs.push_back(needs[i]);
    index[i + 1] = static_cast<std::uint32_t>(manifest.needs.size());
  }
  for (format::ChunkEntry& chunk : manifest.chunks) chunk.need = index[chunk.need];
}

format::FileTime random_time(Random& random) {
  return {static_cast<std::int64_t>(random.between(0, ~0ULL)),
          static_cast<std::uint32_t>(random.between(0, 999'999'999))};
}

}  // namespace

format::Manifest example_manifest() {
  format::Manifest manifest = empty_manifest();
  manifest.segment_bytes = 20480;
  manifest.chunks = {{1, 5000, 0, 4096, 0xAAAA}, {0, 5000, 0, 12288, 0xBBBB}};
  const std::vector<std::pair<Rank, std::uint64_t>> objects = {{0, 5000}, {1, 5000}};
  must(build_index(manifest, objects));
  return manifest;
}

format::ParityManifest example_parity_manifest() {
  format::ParityManifest parity;
  parity.job = "heat";
  parity.node = 3;
  parity.version = 12;
  parity.run = 0x1122334455667788;
  parity.data = 2;
  parity.parity = 1;
  for (const NodeId node : {5u, 3u, 0u}) {
    format::Manifest member = empty_manifest();
    member.node = node;
    member.segment_bytes = 4096 * (2 + node);
    must(build_index(member, {}));
    parity.manifests.push_back(encode(member));
  }
  parity.block_bytes = format::parity_block_bytes(std::uint64_t{4096} * 7, parity.data);
  parity.checked_bytes = 8192;
  parity.checksums = {0xAAAA, 0xBBBB};
  return parity;
}

std::vector<format::Region> example_regions() {
  format::Region step;
  step.name = "step";
  step.type = format::ElementType::i64;
  step.bytes = 8;
  step.shape = {1};
  format::Region u = step;
  u.name = "u";
  u.type = format::ElementType::f64;
  u.bytes = 8000;
  u.shape = {1000};
  std::vector<format::Region> regions = {step, u};
  format::lay_out(regions);
  return regions;
}

format::CommitRecord example_commit() {
  return {.job = "heat",
          .level = Level::local,
          .version = 12,
          .run = 0x1122334455667788,
          .nodes = 7,
          .ranks = 64,
          .payload_bytes = 64 * 8201,
          .manifests_sum = 0xFEDCBA9876543210,
          .captured_ns = 1'795'000'000'000'000'000,
          .committed_ns = 1'795'000'000'750'000'000};
}

format::SegmentHeader example_segment() {
  return {.job = "heat",
          .node = 3,
          .version = 12,
          .run = 0x1122334455667788,
          .created_ns = 1'795'000'000'000'000'000};
}

format::Manifest random_manifest(Random& random) {
  format::Manifest manifest = empty_manifest();
  std::map<format::ObjectId, std::uint64_t> bytes_of;
  for (std::uint64_t wanted = random.between(0, 8); wanted > 0; --wanted) {
    const auto [object, fresh] = bytes_of.try_emplace(random_id(random, manifest));
    if (!fresh) continue;
    for (std::uint64_t left = random.between(0, 6); left > 0; --left) {
      auto length = static_cast<std::uint32_t>(random.between(1, 20'000));
      if (object->first.kind == format::ObjectKind::image && left > 1)
        length = 4096 * (length % 5 + 1);
      manifest.chunks.push_back(
          {object->first, length, object->second, 0, random.between(0, ~0ULL)});
      object->second += length;
    }
  }
  lay_elsewhere(random, manifest);
  place_chunks(random, manifest);
  std::vector<std::pair<format::ObjectId, std::uint64_t>> objects(bytes_of.begin(), bytes_of.end());
  std::shuffle(objects.begin(), objects.end(), random.engine());
  must(index_objects(manifest, objects));
  return manifest;
}

std::vector<format::CapturedFile> example_files() {
  format::CapturedFile out;
  out.path = "/w/out";
  out.mode = 0640;
  out.bytes = 4100;
  out.placed_ns = 1'795'000'000'000'000'000 - 2'000'000'000;
  out.modified = {1'795'000'000 - 1, 500'000'000};
  out.accessed = {1'795'000'000 - 2, 0};
  out.extents = {{0, 12, 0}, {4096, 4, 12}, {6, 6, 16}};
  format::CapturedFile ready = out;
  ready.path = "/w/ready";
  ready.mode = 0644;
  ready.bytes = 0;
  ready.extents.clear();
  return {out, ready};
}

std::vector<format::CapturedFile> random_files(Random& random, std::uint64_t payload_bytes) {
  std::vector<format::CapturedFile> files;
  for (std::uint64_t i = random.between(0, 8); i > 0; --i) {
    format::CapturedFile file;
    file.path = "/tmp/" + std::string(1, static_cast<char>('A' + 9 - i)) + "/\xFF";
    file.mode = static_cast<std::uint32_t>(random.between(0, 07777));
    file.bytes = random.between(0, 3000);
    file.placed_ns = random.between(0, ~0ULL);
    file.modified = random_time(random);
    file.accessed = random_time(random);
    const std::uint64_t longest = std::min(file.bytes, payload_bytes);
    for (std::uint64_t left = longest == 0 ? 0 : random.between(0, 12); left > 0; --left) {
      const std::uint64_t bytes = random.between(1, random.coin() ? longest : longest / 20 + 1);
      if (bytes > longest) continue;
      file.extents.push_back(
          {random.between(0, file.bytes - bytes), bytes, random.between(0, payload_bytes - bytes)});
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<format::Stream> example_streams() {
  format::Stream left{"left", 0, {}}, right{"right", 0, {}};
  left.append(0, 2);
  right.append(2, 3);
  left.append(5, 2);
  return {left, right, {"none", 0, {}}};
}

std::string example_stream_text() { return "abxyzcd"; }

std::vector<format::Stream> random_streams(Random& random, std::uint64_t& bytes) {
  std::vector<format::Stream> streams(random.between(1, 8));
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i].name = "s" + std::to_string(i);
  bytes = 0;
  for (std::uint64_t left = random.between(0, 30); left > 0; --left) {
    const std::uint64_t piece = random.between(1, 5000);
    streams[random.between(0, streams.size() - 1)].append(bytes, piece);
    bytes += piece;
  }
  return streams;
}

std::vector<format::Region> random_regions(Random& random) {
  std::vector<format::Region> regions;
  for (std::uint64_t left = random.between(0, 12); left > 0; --left) {
    const std::string name = "region " + std::to_string(left) + "\xC3\xA9";
    regions.push_back(random.between(0, 4) == 0 ? random_file(random, name)
                                                : random_array(random, name));
  }
  format::lay_out(regions);
  return regions;
}

namespace {

wire::CutReport sample_cut_report() {
  return {8,
          3,
          64,
          60,
          5,
          4,
          3,
          2,
          1ULL << 33,
          (1ULL << 33) - 1,
          11,
          {{1ULL << 40, 5, 6}, {9, 7, 7}},
          {{1, 2, 1, 4}, {5, UINT32_MAX, 0, 0}},
          true};
}

std::vector<wire::Message> last_messages() {
  using namespace wire;
  return {EndRanks{"job", "/versions", 0x1122334455667788},
          Join{"0.1.0", "heat.files.n1", 4711, "/tmp/tier", 4, "/shared", 3, 1 << 20},
          Open{2},
          Opened{12, Code::too_large, "used up"},
          More{12, 2},
          Finish{12, 1ULL << 33},
          Abandon{12, Code::io, "the file is gone"},
          BringHome{"/w/out"},
          AtHome{"/w/out", Code::no_space, "the disk is full"},
          MoveHome{12, 77, "/w/out.tmp", "/w/out", 1'700'000'000'000'000'000},
          MovedHome{12, "/w/out", Code::busy, "/w/out is on its way"},
          AskCut{7, 60'000},
          sample_cut_report(),
          RefuseCut{8, Code::rank_lost, "rank 2 (n1) has ended"},
          CutOrder{8, 1, 3, 12, {{1ULL << 40, 6}, {9, 7}}, {{1, UINT32_MAX, 0, 4}}, true},
          CutOver{8, Code::again, "rank 3 (n1) has not called MPI for 60 s"},
          NoteWrites{
              2, 9000, 1, 10, 3, 30, {{64, 4, 100, 9}, {0, 1, 8900, 700}}, {{"close", 2, 50, 40}}},
          Kept{12, 11, 1ULL << 33, {{1ULL << 32, 4 << 20}, {0, 4096}}},
          Copied{"heat.files.n1", "/versions", 12, 0x1122334455667788}};
}

std::vector<wire::Message> first_messages() {
  using namespace wire;
  const std::vector<ChunkInPool> chunks = {{7, 4096, 1ULL << 40, 0x0123456789ABCDEF},
                                           {8, 1, (1ULL << 40) + 4096, 42}};
  return {
      Hello{"0.1.0", "heat",  99,   3,           64,    1,         2,
            5,       32,      4711, "/tmp/tier", 4,     "/shared", 5,
            3,       1 << 20, 4,    2,           "3,1", 1 << 19,   std::string(64, 'a')},
      Begin{12, 1ULL << 33},
      Filled{12, chunks},
      End{12, 8'000'000, true},
      Query{11},
      Await{10, Level::durable},
      Restart{9, 12},
      Verified{9, {1, 2, 3}, false, "chunk of rank 3", 4, true},
      Refuse{9, Code::rank_count, "saved by 4 ranks"},
      Restored{9, Code::io},
      Fetch{8, 63, 4096, 65536, true},
      Request{"heat", true},
      Goodbye{},
      Admin{},
      wire::Status{},
      Shutdown{false},
      Welcome{
          "0.1.0", 1ULL << 30, 4U << 20, 16, 32, 11, true, "n3:7000", {{"pool.size_mib", "64"}}},
      Grant{12, {4, 5}},
      Captured{12, Code::rank_lost, "rank 2 has gone"},
      LevelIs{12, Level::captured, Code::no_space, "the disk is full"},
      Plan{9, 1ULL << 32, true, Code::corrupt, "node 3", 2, 64, true},
      Chunks{9, true, chunks},
      Deliver{9},
      Answer{Code::not_found, "{\"jobs\": []}"},
      Failure{Code::protocol, "other release"},
      Withdraw{9, 2},
      Withdrawn{9, 2},
      Forget{"job", "/versions", 12},
      AwaitNewer{"job", "/versions", 12, Level::local},
      Neighbours{false, {{3, "n3:7000", "rack 1"}, {4, "n4:7000", ""}}},
      Candidates{12, 0x1122334455667788},
      Candidate{11, 0x1122334455667788, Code::none, "no version yet", 64},
      Ready{11, 3},
      Proceed{11, 3, false},
      Where{"job", "/versions", 12},
  };
}

}  // namespace

std::vector<wire::Message> one_of_each_message() {
  std::vector<wire::Message> all = first_messages();
  for (wire::Message& message : last_messages()) all.push_back(std::move(message));
  return all;
}

std::vector<wire::tree::Message> one_of_each_tree_message() {
  using namespace wire::tree;
  const LinkId link{5, 1ULL << 60, 3};
  const Key key{2, 99, 12};
  return {Join{link, 99, 64, 16, 5, "host5:7000"},
          Accept{link, {0, 1}, 4},
          Refuse{link, 1, {{2, "host2"}, {3, ""}}},
          Report{link, 77, 76, {{5, 3}, {9, 1}}, {{key, 2, 3, {{5, 3}}}, {}}, 8, {{1, "host1"}}},
          Beat{link, 76, 77, {0, 1}, 4, {{key, 2}}, true, {{7, 1}}, 6},
          Facts{link, 4, 6, {{5, 1ULL << 60, 1, "seed", "42"}, {6, 1, 2, "name", ""}}},
          Leave{link}};
}

namespace {

constexpr RunId peer_run = 0x1122334455667788;

std::vector<wire::peer::Message> peer_messages_of_files() {
  using namespace wire::peer;
  Keep keep{12, peer_run, 3, 1ULL << 33, 7, 64, Level::local, 1ULL << 32, 99, 41, 42, {3, 5}, {}};
  keep.needs = {{9, peer_run}, {11, peer_run}};
  return {Get{7, 12, peer_run, 3, true, true, 1ULL << 33, 4U << 20},
          No{7, Code::not_found, "version 12 is gone"},
          keep,
          Kept{12, peer_run, 3, Code::no_space, "the disk is full"},
          Holds{5, 12, peer_run, 3, true, true, {0, 7, 14}},
          HoldsSeen{5},
          Lookup{8, 12, peer_run, 63, true},
          Holders{8, {{1, 3}, {2, 3}}},
          Look{9, 12, peer_run},
          Seen{9,
               "n1",
               77,
               4,
               3,
               1ULL << 28,
               1U << 20,
               64,
               5,
               1ULL << 33,
               1ULL << 34,
               12,
               Level::protected_,
               "version 13 is not local: the disk is full",
               Level::local,
               Code::no_space,
               {3, 5},
               2,
               1,
               {2, 0, 7}},
          Due{12, peer_run, 7, 64, 41, true},
          Which{9, 12, peer_run},
          Parts{9, {3, 5}},
          Turn{9, 12, peer_run, 3},
          TurnOver{9, Code::no_space, "it is full", true, 1ULL << 32, 99, {{9, peer_run}}},
          Durable{12, peer_run, 7, 64, 1ULL << 32, 99, 41, 42, {{9, peer_run}, {11, peer_run}}},
          NotDurable{12, peer_run, Code::agent_lost, "node 3 is lost"},
          DurableGone{12, peer_run},
          Rebuild{10, 12, peer_run, 63},
          Rebuilt{10, Code::lost, "too much is lost", 3},
          Doubt{12, peer_run, 3}};
}

std::vector<wire::peer::Message> peer_messages_of_cuts() {
  return {wire::AskCut{7, 60'000},
          sample_cut_report(),
          wire::RefuseCut{8, Code::rank_lost, "rank 2 (n1) has ended"},
          wire::CutOrder{8, 4, 3, 0, {{9, 7}}, {{1, 2, 1, 4}}, false},
          wire::CutOver{8, Code::ok, ""},
          wire::peer::WhoIsLate{8, 60}};
}

}  // namespace

std::vector<wire::peer::Message> one_of_each_peer_message() {
  std::vector<wire::peer::Message> all = peer_messages_of_files();
  for (wire::peer::Message& message : peer_messages_of_cuts()) all.push_back(std::move(message));
  return all;
}

}  // namespace backstay::test
