// Sixty lines are enough for src/store without an agent: `alone write DIR RANKS` saves an array of
// each rank as version 1 of job `alone`; `alone read DIR RANK` prints that of one rank.
#include <cstring>
#include <iostream>

#include "base/checksum.h"
#include "base/clock.h"
#include "format/object.h"
#include "io/posix.h"
#include "store/catalog.h"
#include "store/job_lock.h"
#include "store/part_reader.h"
#include "store/part_writer.h"
#include "store/records.h"
#include "tier/dir.h"

namespace backstay {

constexpr std::uint32_t elements = 100'000;

Status write(tier::Tier& tier, const std::string& dir, std::uint32_t ranks) {
  BACKSTAY_ASSIGN(const store::HeldLock lock, store::lock_job(dir, "alone"));
  store::PartWriter writer(tier, "alone", {1, /*run=*/7, /*node=*/0, /*nodes=*/1, ranks, 1 << 20});
  BACKSTAY_TRY(writer.open(std::uint64_t{ranks} << 20));
  store::PartEnd end{.version = 1, .captured_ns = system_clock().wall_ns(), .object_bytes = {}};
  std::vector<AlignedMemory> objects;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<format::Region> regions(1);
    regions[0].name = std::string("u"), regions[0].type = format::ElementType::f64;
    regions[0].shape = {elements}, regions[0].bytes = elements * sizeof(double);
    const std::uint64_t table_at = format::lay_out(regions);
    const Buffer tail = format::encode_tail(regions, table_at);
    const auto bytes = static_cast<std::uint32_t>(table_at + tail.size());
    const auto memory = objects.emplace_back(format::slot_bytes(bytes)).span();
    auto* u = reinterpret_cast<double*>(memory.data() + regions[0].offset);
    for (std::uint32_t i = 0; i < elements; ++i) u[i] = rank + 1e-6 * i;
    std::memcpy(memory.data() + table_at, tail.data(), tail.size());
    writer.write({rank, 0, bytes, checksum(memory.first(bytes)), memory}, rank);
    end.object_bytes.emplace_back(rank, bytes);
  }
  while (writer.in_flight() > 0) writer.reap(/*wait=*/true);
  if (writer.error()) return *writer.error();
  BACKSTAY_ASSIGN(store::FinishedPart part, writer.finish(end));
  return store::put_record(tier, part.record);
}

Status read(tier::Tier& tier, Rank rank) {
  const store::StoredVersion stored = store::look_at(tier, "alone", 1);
  BACKSTAY_ASSIGN(const format::Manifest manifest,
                  store::read_manifest(tier, "alone", stored.record, 0));
  store::PartReader reader({&tier}, manifest);
  BACKSTAY_TRY(reader.open());
  const format::ObjectEntry& object = *manifest.find(rank);
  Buffer bytes;
  for (const format::ChunkEntry& chunk : manifest.chunks_of(object)) {
    AlignedMemory memory(format::slot_bytes(chunk.length));
    BACKSTAY_TRY(reader.read(chunk, memory.span()));
    const auto data = memory.span().first(chunk.length);
    bytes.insert(bytes.end(), data.begin(), data.end());
  }
  const Bytes all = bytes;
  BACKSTAY_ASSIGN(const format::Footer footer,
                  format::decode_footer(all.last(format::object_footer_bytes), object.bytes));
  BACKSTAY_ASSIGN(
      const format::Table table,
      format::decode_table(all.subspan(footer.table_offset, footer.table_bytes), footer));
  const auto* u = reinterpret_cast<const double*>(all.data() + table.regions[0].offset);
  for (std::uint32_t i = 0; i < elements; ++i) std::cout << u[i] << '\n';
  return {};
}

}  // namespace backstay

int main(int argc, char** argv) {
  using namespace backstay;
  if (argc < 4) return 2;
  const std::string what = argv[1], dir = argv[2];
  const auto number = static_cast<std::uint32_t>(std::stoul(argv[3]));
  const auto ring = [] { return io::make_thread_ring(8, 1); };
  const auto tier = tier::open_dir_tier(io::posix_filesystem(), ring, {.root = dir});
  if (!tier.ok()) return 2;
  const Status done = what == "write" ? write(**tier, dir, number) : read(**tier, number);
  if (!done.ok()) std::cerr << done.error().to_string() << '\n';
  return done.ok() ? 0 : 1;
}
