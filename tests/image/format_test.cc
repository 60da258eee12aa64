#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "image/sample.h"
#include "support/damage.h"

namespace backstay::image {
namespace {

using testing::HasSubstr;

Result<Image> read(const Buffer& tail, std::uint64_t table_offset) {
  if (tail.size() < footer_bytes) return Error(Code::corrupt, "short");
  const Bytes bytes(tail);
  BACKSTAY_ASSIGN(const Footer footer,
                  decode_footer(bytes.last(footer_bytes), table_offset + tail.size()));
  return decode_table(bytes.first(tail.size() - footer_bytes), footer);
}

void expect_refused(const Image& image, const std::string& why) {
  const auto result =
      read(encode_tail(image, test::sample_table_offset), test::sample_table_offset);
  ASSERT_FALSE(result.ok()) << why;
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

// Rows of "    offset  bytes": those of the page's only dump; bytes not shown are zeros.
Buffer page_dump(std::size_t bytes) {
  std::ifstream file(BACKSTAY_PAGES_DIR "/image.md");
  Buffer out(bytes);
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 12 || line.compare(0, 4, "    ") != 0 || line.compare(8, 2, "  ") != 0 ||
        line.find_first_not_of("0123456789abcdef ") != std::string::npos) {
      continue;
    }
    std::istringstream words(line);
    std::size_t at = 0;
    words >> std::hex >> at;
    at -= test::sample_table_offset;
    for (unsigned value = 0; words >> value && at < bytes;) out[at++] = std::byte(value);
  }
  return out;
}

std::string as_dump(const Buffer& tail) {
  std::ostringstream out;
  out << std::hex << std::setfill('0');
  for (std::size_t at = 0; at < tail.size(); at += 16) {
    const Bytes row = Bytes(tail).subspan(at, std::min<std::size_t>(16, tail.size() - at));
    if (std::all_of(row.begin(), row.end(), [](auto b) { return b == std::byte{0}; })) continue;
    out << "    " << std::setw(4) << at + test::sample_table_offset << " ";
    for (const std::byte b : row) out << ' ' << std::setw(2) << static_cast<unsigned>(b);
    out << '\n';
  }
  return out.str();
}

TEST(ImageFormat, WorkedExampleOfThePage) {
  const Buffer tail = encode_tail(test::sample_image(), test::sample_table_offset);
  EXPECT_EQ(page_dump(tail.size()), tail) << "the page should say:\n" << as_dump(tail);
  const auto image = read(tail, test::sample_table_offset);
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  EXPECT_EQ(image->text(image->identity.program), "/bin/a");
  EXPECT_EQ(image->text(image->identity.kernel), "6.1");
  EXPECT_EQ(image->areas[0].end, 0x7f0000003000U);
  EXPECT_EQ(encode_tail(*image, test::sample_table_offset), tail);
}

// The sample's page behind another one that no run names.
Image sample_that_keeps() {
  Image image = test::sample_image();
  image.runs[0].offset = page_bytes;
  return image;
}

TEST(ImageFormat, OneThatKeepsPagesMayHaveSomeThatAreNobodys) {
  const std::uint64_t table = 2 * page_bytes;
  const Buffer tail = encode_tail(sample_that_keeps(), table, format_kept);
  const auto image = read(tail, table);
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  EXPECT_EQ(image->runs[0].offset, page_bytes);
  EXPECT_FALSE(read(encode_tail(sample_that_keeps(), table), table).ok()) << "format 1 has none";
}

TEST(ImageFormat, RunsOfOneThatKeepsPagesShareNone) {
  const std::uint64_t table = 2 * page_bytes;
  const auto refused = [&](std::uint64_t offset, std::uint64_t pages) {
    Image image = sample_that_keeps();
    image.runs[0] = {image.areas[0].start, 1, page_bytes, 0};
    image.runs.push_back({image.areas[0].start + page_bytes, pages, offset, 0});
    return !read(encode_tail(image, table, format_kept), table).ok();
  };
  EXPECT_FALSE(refused(0, 1)) << "in another order than that of the addresses";
  EXPECT_TRUE(refused(page_bytes, 1)) << "the same page twice";
  EXPECT_TRUE(refused(2 * page_bytes, 1)) << "of the table";
  EXPECT_TRUE(refused(8, 1)) << "no page";
}

TEST(ImageFormat, EveryFlippedByteIsNoticed) {
  const Buffer tail = encode_tail(test::sample_image(), test::sample_table_offset);
  backstay::test::for_every_flip(tail, [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(read(damaged, test::sample_table_offset).ok()) << at;
  });
  backstay::test::for_every_prefix(tail, [](const Buffer& shorter) {
    EXPECT_FALSE(read(shorter, test::sample_table_offset).ok()) << shorter.size();
  });
}

TEST(ImageFormat, RefusesWhatDoesNotFitTogether) {
  const Image good = test::sample_image();
  Image bad = good;
  bad.runs[0].address += page_bytes;
  expect_refused(bad, "outside of the map");
  bad = good;
  bad.runs[0].pages = 2;
  expect_refused(bad, "outside of the map");
  bad = good;
  bad.runs[0].offset = page_bytes;
  expect_refused(bad, "not where the one before ends");
  bad = good;
  bad.runs[0].version = 3;
  expect_refused(bad, "another version");
  bad = good;
  bad.runs.clear();
  expect_refused(bad, "no run names");
  bad = good;
  bad.areas[0].kind = 2;
  expect_refused(bad, "an area");
  bad = good;
  bad.identity.cwd = 19;
  expect_refused(bad, "text");
  bad = good;
  bad.threads.clear();
  expect_refused(bad, "no threads");
  bad = good;
  bad.descriptors = {{0, 0, 0, 0, 5, 1, 3, 4, 0, 0, 3, 0}};
  expect_refused(bad, "descriptor 3");
}

TEST(ImageFormat, RefusesANewerFormatAndOtherObjects) {
  Buffer tail = encode_tail(test::sample_image(), test::sample_table_offset);
  const std::size_t footer = tail.size() - footer_bytes;
  backstay::test::overwrite(tail, footer + 8, std::uint32_t{3});
  auto result = read(tail, test::sample_table_offset);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::format);
  EXPECT_THAT(result.error().message(), HasSubstr("format 3"));
  tail[footer] = std::byte{'X'};
  result = read(tail, test::sample_table_offset);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::format);
}

}  // namespace
}  // namespace backstay::image
