#include "format/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

using test::Random;
using testing::HasSubstr;

Result<std::vector<CapturedFile>> read_files_tail(Bytes tail, std::uint64_t table_offset) {
  if (tail.size() < object_footer_bytes) return Error(Code::corrupt, "short");
  const std::size_t table_bytes = tail.size() - object_footer_bytes;
  BACKSTAY_ASSIGN(
      const Footer footer,
      decode_footer(tail.subspan(table_bytes), table_offset + tail.size(), ObjectKind::files));
  return decode_files(tail.first(table_bytes), footer);
}

void expect_refused(const std::vector<CapturedFile>& files, const std::string& why) {
  const auto result = read_files_tail(encode_files(files, 64), 64);
  ASSERT_FALSE(result.ok()) << why;
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

TEST(Files, WorkedExampleOfThePage) {
  const Buffer tail = encode_files(test::example_files(), aligned_in_object(22));
  EXPECT_EQ(tail.size(), 128U + 58U + object_footer_bytes);
  const auto files = read_files_tail(tail, 64);
  ASSERT_TRUE(files.ok()) << files.error().to_string();
  EXPECT_EQ(*files, test::example_files());
}

TEST(Files, RandomOnesComeBack) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t payload = random.between(0, 2000);
    const auto files = test::random_files(random, payload);
    const std::uint64_t table_offset = aligned_in_object(payload);
    const Buffer tail = encode_files(files, table_offset);
    const auto back = read_files_tail(tail, table_offset);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(*back, files);
    EXPECT_EQ(encode_files(*back, table_offset), tail);
  }
}

TEST(Files, WithoutFiles) {
  const Buffer tail = encode_files({}, 0);
  EXPECT_EQ(tail.size(), object_footer_bytes);
  const auto files = read_files_tail(tail, 0);
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(files->empty());
}

TEST(Files, EveryFlippedByteAndEveryTruncationIsRefused) {
  const Buffer tail = encode_files(test::example_files(), 64);
  test::for_every_flip(tail, [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(read_files_tail(damaged, 64).ok()) << "byte " << at;
  });
  test::for_every_prefix(tail, [](const Buffer& shorter) {
    EXPECT_FALSE(read_files_tail(shorter, 64).ok()) << shorter.size();
  });
}

TEST(Files, AreNoRegions) {
  const Buffer tail = encode_files(test::example_files(), 64);
  const auto footer = decode_footer(Bytes(tail).last(object_footer_bytes), 64 + tail.size());
  ASSERT_FALSE(footer.ok());
  EXPECT_THAT(footer.error().message(), HasSubstr("is not that of regions"));
}

TEST(Files, InconsistentRecordsAreRefused) {
  const auto changed = [](auto change) {
    auto files = test::example_files();
    change(files);
    return files;
  };
  expect_refused(changed([](auto& f) { std::swap(f[0], f[1]); }), "out of order");
  expect_refused(changed([](auto& f) { f[1].path = f[0].path; }), "there twice");
  expect_refused(changed([](auto& f) { f[0].path = "w/out"; }), "a path");
  expect_refused(changed([](auto& f) { f[0].path = "/a/../b"; }), "a path");
  expect_refused(changed([](auto& f) { f[0].mode = 010000; }), "permission bits");
  expect_refused(changed([](auto& f) { f[0].modified.nanoseconds = 1'000'000'000; }), "time");
  expect_refused(changed([](auto& f) { f[1].accessed.nanoseconds = ~0U; }), "time");
  expect_refused(changed([](auto& f) { f[0].extents[0].bytes = 0; }), "without bytes");
  expect_refused(changed([](auto& f) { f[0].bytes = 4099; }), "end of the file");
  expect_refused(changed([](auto& f) { f[0].extents[1].file_offset = ~0ULL; }), "of the file");
  expect_refused(changed([](auto& f) { f[0].extents[1].bytes = ~0ULL; }), "end of the file");
  expect_refused(changed([](auto& f) { f[0].extents[1].object_offset = 61; }), "of the payload");
  expect_refused(changed([](auto& f) { f[0].extents[1].object_offset = ~0ULL; }), "the payload");
}

TEST(Files, ANumberOfExtentsIsNotBelieved) {
  Buffer tail = encode_files(test::example_files(), 64);
  const std::size_t table_bytes = tail.size() - object_footer_bytes;
  test::overwrite(tail, 2 + 6 + 4, ~std::uint32_t{0});
  test::overwrite(tail, table_bytes + 32, checksum(Bytes(tail).first(table_bytes)));
  test::reseal(tail, tail.size() - 8, table_bytes);
  const auto result = read_files_tail(tail, 64);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("number of extents"));
}

TEST(FilePath, IsAbsoluteAndPlain) {
  const std::string longest = "/" + std::string(file_name_max, 'n');
  for (const std::string& good : {std::string("/a"), std::string("/a b/\xFF/..."), longest}) {
    EXPECT_TRUE(check_file_path(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("a"), std::string("/"), std::string("//a"), std::string("/a/"),
        std::string("/a//b"), std::string("/."), std::string("/a/./b"), std::string("/.."),
        std::string("/a/.."), std::string("/a\0b", 4), longest + "n"}) {
    EXPECT_FALSE(check_file_path(bad).ok()) << bad;
  }
  std::string deep;
  while (deep.size() + 2 <= file_path_max) deep += "/d";
  EXPECT_TRUE(check_file_path(deep).ok());
  EXPECT_EQ(check_file_path(deep + "/d").error().code(), Code::too_large);
}

}  // namespace
}  // namespace backstay::format
