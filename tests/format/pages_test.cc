// The dumps in docs/format decode to what the pages say, and encode to the same bytes again.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/checksum.h"
#include "format/extent_map.h"
#include "format/files.h"
#include "format/home_mark.h"
#include "format/manifest.h"
#include "format/object.h"
#include "format/segment.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

constexpr RunId example_run = 0x1122334455667788;
constexpr std::uint64_t captured_ns = 1'795'000'000'000'000'000;

// Two bytes of hexadecimal digits: a byte. Anything else: no dump.
bool read_row(const std::string& line, std::size_t& at, std::vector<std::byte>& row) {
  if (line.size() < 12 || line.compare(0, 4, "    ") != 0 || line.compare(8, 2, "  ") != 0 ||
      line.find_first_not_of("0123456789abcdef ") != std::string::npos) {
    return false;
  }
  std::istringstream words(line);
  words >> std::hex >> at;
  for (unsigned value = 0; words >> value;) row.push_back(static_cast<std::byte>(value));
  return words.eof() && !row.empty();
}

// The n-th dump of a page: bytes from `begin` to `end`.
Buffer dump(const std::string& page, int wanted, std::size_t begin, std::size_t end) {
  std::ifstream file(BACKSTAY_PAGES_DIR "/" + page);
  Buffer out(end - begin);
  int number = -1;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    std::size_t at = 0;
    std::vector<std::byte> row;
    const bool is_row = read_row(line, at, row);
    if (is_row && !inside) ++number;
    inside = is_row;
    if (!is_row || number != wanted) continue;
    EXPECT_TRUE(at >= begin && at + row.size() <= end) << line;
    if (at < begin || at + row.size() > end) continue;
    std::copy(row.begin(), row.end(), out.begin() + static_cast<std::ptrdiff_t>(at - begin));
  }
  EXPECT_GE(number, wanted) << "no such dump in " << page;
  return out;
}

Buffer object_of(Rank rank) {
  Buffer object(8064);
  const std::int64_t step = 1000;
  std::memcpy(object.data(), &step, sizeof step);
  for (std::size_t k = 0; k < 1000; ++k) {
    const auto value = static_cast<double>(k + 1000 * rank);
    std::memcpy(object.data() + 64 + 8 * k, &value, sizeof value);
  }
  const Buffer tail = dump("object.md", 0, 8064, 8201);
  object.insert(object.end(), tail.begin(), tail.end());
  return object;
}

TEST(Pages, Object) {
  const Buffer tail = dump("object.md", 0, 8064, 8201);
  const auto footer = decode_footer(Bytes(tail).last(object_footer_bytes), 8201);
  ASSERT_TRUE(footer.ok()) << footer.error().to_string();
  const auto table = decode_table(Bytes(tail).first(73), *footer);
  ASSERT_TRUE(table.ok()) << table.error().to_string();
  const auto& regions = table->regions;
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].name, "step");
  EXPECT_EQ(regions[1].type, ElementType::f64);
  EXPECT_EQ(regions[1].bytes, 8000U);
  EXPECT_EQ(encode_tail(regions, 8064), tail);
  const Buffer with_note = encode_tail(regions, 8064, {{std::string(note_program), "heat"}});
  const Buffer note = dump("object.md", 1, 0x1fc9, 0x1fd9);
  EXPECT_EQ(Buffer(with_note.begin() + 73, with_note.begin() + 73 + 16), note);
}

TEST(Pages, Streams) {
  const Buffer payload = dump("streams.md", 0, 0, 134);
  const auto trailer =
      decode_streams_trailer(Bytes(payload).last(streams_trailer_bytes), payload.size());
  ASSERT_TRUE(trailer.ok()) << trailer.error().to_string();
  const auto streams =
      decode_streams(Bytes(payload).subspan(trailer->index_offset, trailer->index_bytes), *trailer);
  ASSERT_TRUE(streams.ok()) << streams.error().to_string();
  EXPECT_EQ(*streams, test::example_streams());
  const Buffer index = encode_streams(*streams, trailer->index_offset);
  EXPECT_EQ(Buffer(payload.begin() + 7, payload.end()), index);
  EXPECT_EQ(std::memcmp(payload.data(), test::example_stream_text().data(), 7), 0);
}

TEST(Pages, Segment) {
  const Buffer block = dump("segment.md", 0, 0, segment_header_bytes);
  const auto header = decode_segment_header(block);
  ASSERT_TRUE(header.ok()) << header.error().to_string();
  EXPECT_EQ((*header).job, "heat");
  EXPECT_EQ((*header).version, 12U);
  EXPECT_EQ((*header).run, example_run);
  EXPECT_EQ(encode(*header), block);
}

TEST(Pages, Manifest) {
  const Buffer bytes = dump("manifest.md", 0, 0, 344);
  const auto manifest = decode_manifest(bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.error().to_string();
  EXPECT_EQ((*manifest).segment_bytes, 28672U);
  EXPECT_EQ((*manifest).captured_ns, captured_ns);
  ASSERT_EQ((*manifest).chunks.size(), 2U);
  for (Rank rank = 0; rank < 2; ++rank) {
    const ChunkEntry& chunk = (*manifest).chunks[rank];
    EXPECT_EQ(chunk.segment_offset, rank == 0 ? 16384U : 4096U);
    EXPECT_EQ(chunk.length, 8201U);
    EXPECT_EQ(chunk.checksum, checksum(object_of(rank))) << "rank " << rank;
  }
  EXPECT_EQ(encode(*manifest), bytes);
}

TEST(Pages, Files) {
  const Buffer object = dump("files.md", 0, 0, 314);
  const auto footer =
      decode_footer(Bytes(object).last(object_footer_bytes), object.size(), ObjectKind::files);
  ASSERT_TRUE(footer.ok()) << footer.error().to_string();
  const auto files = decode_files(Bytes(object).subspan(64, 186), *footer);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ(files->at(0).path, "/w/out");
  EXPECT_EQ(files->at(1).path, "/w/ready");
  std::string text(files->at(0).bytes, '.');
  for (const ReadPiece& piece : ExtentMap(files->at(0).extents).read(0, text.size())) {
    if (!piece.object_offset) continue;
    std::memcpy(text.data() + piece.file_offset, object.data() + *piece.object_offset, piece.bytes);
  }
  EXPECT_EQ(text, "hello there\n" + std::string(4084, '.') + "end\n");
  const Buffer tail = encode_files(*files, 64);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), object.begin() + 64, object.end()));
}

TEST(Pages, ManifestThatNeedsAnother) {
  const Buffer bytes = dump("manifest.md", 1, 0, 432);
  const auto manifest = decode_manifest(bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.error().to_string();
  ASSERT_EQ(manifest->needs.size(), 1U);
  EXPECT_EQ(manifest->needs[0], (Need{12, example_run}));
  ASSERT_EQ(manifest->chunks.size(), 3U);
  EXPECT_EQ(manifest->chunks[0].need, 1U);
  EXPECT_EQ(manifest->chunks[0].segment_offset, 16384U);
  EXPECT_EQ(manifest->chunks[0].checksum, checksum(object_of(0)));
  EXPECT_TRUE(manifest->chunks[1].here());
  const ObjectEntry* files = manifest->find({OwnerKind::writer, 0, ObjectKind::files});
  ASSERT_NE(files, nullptr);
  EXPECT_EQ(manifest->chunks_of(*files)[0].checksum, checksum(dump("files.md", 0, 0, 314)));
  EXPECT_EQ(encode(*manifest), bytes);
}

TEST(Pages, Commit) {
  const Buffer bytes = dump("manifest.md", 2, 0, commit_record_bytes);
  const auto record = decode_commit(bytes);
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_EQ((*record).level, Level::local);
  EXPECT_EQ((*record).payload_bytes, 2U * 8201U);
  EXPECT_EQ((*record).manifests_sum, manifest_digest(dump("manifest.md", 0, 0, 344)));
  EXPECT_EQ((*record).committed_ns, captured_ns + 750'000'000);
  EXPECT_EQ(encode(*record), bytes);
}

TEST(Pages, HomeMark) {
  const Buffer bytes = dump("home.md", 0, 0, 172);
  const auto mark = decode_home_mark(bytes);
  ASSERT_TRUE(mark.ok()) << mark.error().to_string();
  EXPECT_EQ(mark->job, "heat");
  EXPECT_EQ(mark->version, 13U);
  EXPECT_EQ(mark->run, example_run);
  EXPECT_EQ(mark->files, (std::vector<FileNotHome>{{"/w/out", NotHome::waits, "disk full"}}));
  EXPECT_EQ(encode(*mark), bytes);
}

TEST(Pages, ChecksumsOfTheOverview) {
  const std::string_view abc = "abc";
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2U);
  EXPECT_EQ(checksum(std::as_bytes(std::span(abc))), 0x78af5f94892f3950U);
}

}  // namespace
}  // namespace backstay::format
