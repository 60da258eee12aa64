#include "format/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/damage.h"
#include "support/samples.h"

namespace backstay::format {
namespace {

using test::Random;
using testing::HasSubstr;

// What a reader does with the end of an object: footer, then table.
Result<Table> read_table(Bytes tail, std::uint64_t table_offset) {
  if (tail.size() < object_footer_bytes) return Error(Code::corrupt, "short");
  const std::size_t table_bytes = tail.size() - object_footer_bytes;
  BACKSTAY_ASSIGN(const Footer footer,
                  decode_footer(tail.subspan(table_bytes), table_offset + tail.size()));
  return decode_table(tail.first(table_bytes), footer);
}

Result<std::vector<Region>> read_tail(Bytes tail, std::uint64_t table_offset) {
  BACKSTAY_ASSIGN(Table table, read_table(tail, table_offset));
  return std::move(table.regions);
}

Buffer tail_of(std::vector<Region> regions, std::uint64_t* table_offset) {
  *table_offset = lay_out(regions);
  return encode_tail(regions, *table_offset);
}

void expect_refused(std::vector<Region> regions, const std::string& why) {
  std::uint64_t table_offset = 0;
  for (const Region& region : regions) {
    table_offset = std::max(table_offset, (region.offset + region.bytes + 63) / 64 * 64);
  }
  const auto result = read_tail(encode_tail(regions, table_offset), table_offset);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

TEST(Object, WorkedExampleOfThePage) {
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of(test::example_regions(), &table_offset);
  EXPECT_EQ(table_offset, 8064U);
  EXPECT_EQ(tail.size(), 38U + 35U + 64U);
  EXPECT_EQ(table_offset + tail.size(), 8201U);
  const auto regions = read_tail(tail, table_offset);
  ASSERT_TRUE(regions.ok());
  ASSERT_EQ((*regions).size(), 2U);
  EXPECT_EQ((*regions)[0].name, "step");
  EXPECT_EQ((*regions)[0].offset, 0U);
  EXPECT_EQ((*regions)[1].name, "u");
  EXPECT_EQ((*regions)[1].type, ElementType::f64);
  EXPECT_EQ((*regions)[1].offset, 64U);
  EXPECT_EQ((*regions)[1].bytes, 8000U);
  EXPECT_EQ((*regions)[1].shape, std::vector<std::uint64_t>{1000});
  EXPECT_TRUE((*regions)[1].global_shape.empty());
}

TEST(Object, RandomRegionsComeBack) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (int i = 0; i < 300; ++i) {
    const auto regions = test::random_regions(random);
    std::uint64_t table_offset = 0;
    const Buffer tail = tail_of(regions, &table_offset);
    const auto back = read_tail(tail, table_offset);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    ASSERT_EQ((*back).size(), regions.size());
    for (std::size_t k = 0; k < regions.size(); ++k) {
      EXPECT_EQ((*back)[k].name, regions[k].name);
      EXPECT_EQ((*back)[k].kind, regions[k].kind);
      EXPECT_EQ((*back)[k].type, regions[k].type);
      EXPECT_EQ((*back)[k].file_mode, regions[k].file_mode);
      EXPECT_EQ((*back)[k].offset, regions[k].offset);
      EXPECT_EQ((*back)[k].bytes, regions[k].bytes);
      EXPECT_EQ((*back)[k].shape, regions[k].shape);
      EXPECT_EQ((*back)[k].global_shape, regions[k].global_shape);
      EXPECT_EQ((*back)[k].global_offset, regions[k].global_offset);
      EXPECT_EQ((*back)[k].offset % object_alignment, 0U);
    }
  }
}

TEST(Object, WithoutRegions) {
  std::uint64_t table_offset = 1;
  const Buffer tail = tail_of({}, &table_offset);
  EXPECT_EQ(table_offset, 0U);
  EXPECT_EQ(tail.size(), object_footer_bytes);
  const auto regions = read_tail(tail, 0);
  ASSERT_TRUE(regions.ok());
  EXPECT_TRUE((*regions).empty());
}

TEST(Object, EveryFlippedByteIsRefused) {
  SCOPED_TRACE(test::replay());
  Random random;
  for (auto regions : {test::example_regions(), test::random_regions(random)}) {
    std::uint64_t table_offset = 0;
    const Buffer tail = tail_of(regions, &table_offset);
    test::for_every_flip(tail, [&](const Buffer& damaged, std::size_t at) {
      EXPECT_FALSE(read_tail(damaged, table_offset).ok()) << "byte " << at;
    });
  }
}

TEST(Object, EveryTruncationIsRefused) {
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of(test::example_regions(), &table_offset);
  test::for_every_prefix(tail, [&](const Buffer& shorter) {
    EXPECT_FALSE(read_tail(shorter, table_offset).ok()) << shorter.size();
  });
  const Buffer last(tail.end() - object_footer_bytes, tail.end());
  test::for_every_prefix(last, [&](const Buffer& shorter) {
    EXPECT_FALSE(decode_footer(shorter, 8201).ok()) << shorter.size();
  });
}

TEST(Object, FooterOfAnotherLengthIsRefused) {
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of(test::example_regions(), &table_offset);
  const Bytes last = Bytes(tail).last(object_footer_bytes);
  EXPECT_TRUE(decode_footer(last, 8201).ok());
  for (const std::uint64_t wrong : {0ULL, 63ULL, 64ULL, 8200ULL, 8202ULL, ~0ULL}) {
    EXPECT_FALSE(decode_footer(last, wrong).ok()) << wrong;
  }
}

TEST(Object, ResealedFooterWithAbsurdNumbersIsRefused) {
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of(test::example_regions(), &table_offset);
  const Buffer good(tail.end() - object_footer_bytes, tail.end());
  const auto refused = [&](std::size_t at, std::uint64_t value) {
    Buffer footer = good;
    test::overwrite(footer, at, value);
    test::reseal(footer, 56);
    return !decode_footer(footer, 8201).ok();
  };
  for (const std::uint64_t value : {0ULL, 1ULL, 8063ULL, 8128ULL, 1ULL << 63, ~0ULL - 63}) {
    EXPECT_TRUE(refused(16, value)) << "offset " << value;
    EXPECT_TRUE(refused(24, value)) << "length " << value;
  }
  for (const std::uint64_t kind : {0ULL, 2ULL, 3ULL, 5ULL}) EXPECT_TRUE(refused(40, kind));
  EXPECT_TRUE(refused(40, 1 | 1ULL << 32));  // bytes that must be zero
  EXPECT_TRUE(refused(48, 1ULL << 63));
  for (const std::uint32_t count : {0U, 11U, 1'000'017U, ~0U}) {
    Buffer footer = good;
    test::overwrite(footer, 12, count);
    test::reseal(footer, 56);
    EXPECT_FALSE(decode_footer(footer, 8201).ok()) << "records " << count;
  }
}

TEST(Object, NewerFormatIsNamed) {
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of(test::example_regions(), &table_offset);
  Buffer footer(tail.end() - object_footer_bytes, tail.end());
  test::overwrite(footer, 8, std::uint32_t{3});
  test::reseal(footer, 56);
  const auto result = decode_footer(footer, 8201);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::format);
  EXPECT_THAT(result.error().message(), HasSubstr("format 3"));
}

TEST(Object, InconsistentRegionsAreRefused) {
  const auto good = test::example_regions();
  const auto changed = [&](auto change) {
    auto regions = good;
    change(regions);
    return regions;
  };
  expect_refused(changed([](auto& r) { r[1].name = "step"; }), "occurs twice");
  expect_refused(changed([](auto& r) { r[1].name = ""; }), "a name");
  expect_refused(changed([](auto& r) { r[1].name = std::string(201, 'x'); }), "a name");
  expect_refused(changed([](auto& r) { r[1].name = "\xFF"; }), "a name");
  expect_refused(changed([](auto& r) { r[1].shape = {999}; }), "product");
  expect_refused(changed([](auto& r) { r[1].shape = {1ULL << 62, 2, 250}; }), "product");
  expect_refused(changed([](auto& r) { r[1].shape = {}; }), "dimensions");
  expect_refused(changed([](auto& r) { r[1].shape.assign(9, 1); }), "dimensions");
  expect_refused(changed([](auto& r) { r[1].type = static_cast<ElementType>(14); }), "type");
  expect_refused(changed([](auto& r) { r[1].type = static_cast<ElementType>(0); }), "type");
  expect_refused(changed([](auto& r) { r[1].kind = static_cast<RegionKind>(5); }), "kind");
  expect_refused(changed([](auto& r) { r[1].offset = 0; }), "previous one ends");
  expect_refused(changed([](auto& r) { r[1].offset = 128; }), "previous one ends");
  expect_refused(changed([](auto& r) { r[1].offset = 65; }), "previous one ends");
  expect_refused(changed([](auto& r) { std::swap(r[0], r[1]); }), "previous one ends");
  expect_refused(changed([](auto& r) { r[1].file_mode = 0644; }), "mode");
  expect_refused(changed([](auto& r) { r[1].kind = RegionKind::file; }), "plain row");
}

// The end of an object with the regions of the page's example and these notes.
Buffer tail_with(const std::vector<Note>& notes) {
  return encode_tail(test::example_regions(), 8064, notes);
}

void expect_notes_refused(const std::vector<Note>& notes, const std::string& why) {
  const auto result = read_table(tail_with(notes), 8064);
  ASSERT_FALSE(result.ok()) << why;
  EXPECT_EQ(result.error().code(), Code::corrupt);
  EXPECT_THAT(result.error().message(), HasSubstr(why));
}

TEST(Object, NotesComeBackAndAreNoRegions) {
  const auto table = read_table(tail_with({{"program", "heat"}, {"unheard-of", "x"}}), 8064);
  ASSERT_TRUE(table.ok()) << table.error().to_string();
  EXPECT_EQ(table->regions.size(), 2U);
  ASSERT_EQ(table->notes.size(), 2U);
  EXPECT_EQ(table->note(note_program), "heat");
  EXPECT_EQ(table->note("unheard-of"), "x");
  EXPECT_EQ(table->note(note_fresh), "");
}

TEST(Object, ANoteMayHaveTheNameOfARegion) {
  EXPECT_TRUE(read_table(tail_with({{"u", "1"}}), 8064).ok());
}

TEST(Object, WrongNotesAreRefused) {
  expect_notes_refused({{"program", "heat"}, {"program", "sor"}}, "note 'program' occurs twice");
  expect_notes_refused({{"", "heat"}}, "a name");
  expect_notes_refused({{"program", ""}}, "its text");
  expect_notes_refused({{"program", std::string(note_text_max + 1, 'x')}}, "its text");
  expect_notes_refused({{"program", "\xFF"}}, "its text");
  std::vector<Note> many;
  for (std::size_t i = 0; i <= notes_max; ++i) many.push_back({std::to_string(i), "x"});
  expect_notes_refused(many, "notes");
}

TEST(Object, EveryFlippedByteOfANoteIsRefused) {
  const Buffer tail = tail_with({{"program", "heat"}});
  test::for_every_flip(tail, [&](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(read_table(damaged, 8064).ok()) << "byte " << at;
  });
}

TEST(Object, ARegionBehindANoteIsRefused) {
  auto tail = encode_tail({}, 0, {{"program", "heat"}});
  Region empty;
  empty.name = "e";
  empty.shape = {0};
  const Buffer region = encode_tail({empty}, 0);
  const std::size_t note_bytes = tail.size() - object_footer_bytes;
  const std::size_t region_bytes = region.size() - object_footer_bytes;
  tail.insert(tail.begin() + static_cast<std::ptrdiff_t>(note_bytes), region.begin(),
              region.begin() + static_cast<std::ptrdiff_t>(region_bytes));
  const std::size_t table_bytes = note_bytes + region_bytes;
  test::overwrite(tail, table_bytes + 12, std::uint32_t{2});
  test::overwrite(tail, table_bytes + 24, std::uint64_t{table_bytes});
  test::overwrite(tail, table_bytes + 32, checksum(Bytes(tail).first(table_bytes)));
  test::reseal(tail, tail.size() - 8, table_bytes);
  const auto result = read_table(tail, 0);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("behind a note"));
}

TEST(Object, BlocksOutsideOfTheGlobalArrayAreRefused) {
  auto regions = test::example_regions();
  Region& u = regions[1];
  u.global_shape = {2000};
  u.global_offset = {1000};
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of(regions, &table_offset);
  EXPECT_TRUE(read_tail(tail, table_offset).ok());
  u.global_offset = {1001};
  expect_refused(regions, "outside");
  u.global_offset = {~0ULL};
  expect_refused(regions, "outside");
  u.global_shape = {999};
  u.global_offset = {0};
  expect_refused(regions, "outside");
  u.global_shape = {~0ULL};
  expect_refused(regions, "64 bits");
}

TEST(Object, FilesWithOddModesAreRefused) {
  Region file;
  file.name = "out.dat";
  file.kind = RegionKind::file;
  file.bytes = 10;
  file.shape = {10};
  file.file_mode = 07777;
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of({file}, &table_offset);
  EXPECT_TRUE(read_tail(tail, table_offset).ok());
  file.file_mode = 010000;
  expect_refused({file}, "permission bits");
}

TEST(Object, SameNameForArrayAndFileIsGood) {
  Region array;
  array.name = "x";
  array.shape = {0};
  Region file = array;
  file.kind = RegionKind::file;
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of({array, file}, &table_offset);
  EXPECT_TRUE(read_tail(tail, table_offset).ok());
}

TEST(Object, ShapeWithAZeroHasNoBytes) {
  Region region;
  region.name = "empty";
  region.type = ElementType::c128;
  region.shape = {1ULL << 40, 0, 1ULL << 40};
  std::uint64_t table_offset = 0;
  const Buffer tail = tail_of({region}, &table_offset);
  EXPECT_TRUE(read_tail(tail, table_offset).ok());
}

TEST(RegionName, Utf8) {
  for (const char* good : {"a", "x y", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(check_region_name(good).ok()) << good;
  }
  for (const char* bad : {"", "\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF",
                          "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xE2\x82", "\xE2\x28\xA1", "a\xFF"}) {
    EXPECT_FALSE(check_region_name(bad).ok()) << bad;
  }
  EXPECT_FALSE(check_region_name(std::string_view("a\0b", 3)).ok());
  EXPECT_TRUE(check_region_name(std::string(region_name_max, 'n')).ok());
  EXPECT_EQ(check_region_name(std::string(region_name_max + 1, 'n')).error().code(),
            Code::too_large);
}

TEST(ElementTypes, SizesAndNames) {
  EXPECT_EQ(element_bytes(ElementType::byte), 1U);
  EXPECT_EQ(element_bytes(ElementType::i16), 2U);
  EXPECT_EQ(element_bytes(ElementType::f64), 8U);
  EXPECT_EQ(element_bytes(ElementType::c128), 16U);
  EXPECT_EQ(element_bytes(static_cast<ElementType>(14)), 0U);
  EXPECT_EQ(element_name(ElementType::f32), "float32");
  EXPECT_EQ(element_name(ElementType::c64), "complex64");
  EXPECT_EQ(element_name(ElementType::u64), "uint64");
}

}  // namespace
}  // namespace backstay::format
