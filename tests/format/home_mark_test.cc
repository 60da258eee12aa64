#include "format/home_mark.h"

#include <gtest/gtest.h>

#include "support/damage.h"

namespace backstay::format {
namespace {

HomeMark example() {
  return {.job = "heat",
          .node = 3,
          .version = 12,
          .run = 77,
          .files = {{"/w/a", NotHome::waits, "no space left"},
                    {"/w/b", NotHome::kept, "another program's file is newer"},
                    {"/w/\xff", NotHome::waits, ""}}};
}

TEST(HomeMark, ComesBack) {
  const auto back = decode_home_mark(encode(example()));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(back->job, "heat");
  EXPECT_EQ(back->node, 3U);
  EXPECT_EQ(back->version, 12U);
  EXPECT_EQ(back->run, 77U);
  EXPECT_EQ(back->files, example().files);
}

TEST(HomeMark, OneWithoutFilesSaysThatAllAreAtHome) {
  HomeMark mark = example();
  mark.files.clear();
  const auto back = decode_home_mark(encode(mark));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_TRUE(back->files.empty());
}

TEST(HomeMark, ALongReasonIsCut) {
  HomeMark mark = example();
  mark.files[0].why.assign(5000, 'x');
  const auto back = decode_home_mark(encode(mark));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(back->files[0].why, std::string(home_mark_why_max, 'x'));
}

TEST(HomeMark, EveryFlippedByteIsRefused) {
  test::for_every_flip(encode(example()), [](const Buffer& damaged, std::size_t at) {
    EXPECT_FALSE(decode_home_mark(damaged).ok()) << "byte " << at;
  });
}

TEST(HomeMark, EveryShorterOneIsRefused) {
  test::for_every_prefix(encode(example()), [](const Buffer& shorter) {
    EXPECT_FALSE(decode_home_mark(shorter).ok()) << shorter.size();
  });
}

TEST(HomeMark, ResealedNonsenseIsRefused) {
  const auto refused = [](std::size_t at, auto value) {
    Buffer bytes = encode(example());
    test::overwrite(bytes, at, value);
    test::reseal(bytes, bytes.size() - 8);
    return !decode_home_mark(bytes).ok();
  };
  EXPECT_FALSE(refused(24, std::uint64_t{78}));
  EXPECT_TRUE(refused(8, std::uint32_t{3}));
  for (const std::uint32_t files : {0U, 2U, 4U, 0xffff'ffffU}) EXPECT_TRUE(refused(12, files));
  EXPECT_TRUE(refused(16, std::uint64_t{0}));
  EXPECT_TRUE(refused(36, std::uint32_t{1}));
  EXPECT_TRUE(refused(40, std::uint8_t{'/'}));
  for (const int how : {0, 3}) EXPECT_TRUE(refused(144, static_cast<std::uint8_t>(how)));
  EXPECT_TRUE(refused(147, std::uint8_t{'w'}));   // a path that is not absolute
  EXPECT_TRUE(refused(150, std::uint8_t{'b'}));   // twice
  EXPECT_TRUE(refused(145, std::uint16_t{900}));  // longer than the mark
}

}  // namespace
}  // namespace backstay::format
