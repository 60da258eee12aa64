#include "bin/parts/print.h"

#include <gtest/gtest.h>

namespace backstay::bin {
namespace {

TEST(Print, SizesAndRates) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(std::uint64_t{256} << 20), "256 MiB");
  EXPECT_EQ(bytes_text(~std::uint64_t{0}), "16384 PiB");
  EXPECT_EQ(rate_text(1.61e9), "1.61 GB/s");
  EXPECT_EQ(rate_text(-5), "0 B/s");
}

TEST(Print, Durations) {
  EXPECT_EQ(duration_text(0.25), "0.25 s");
  EXPECT_EQ(duration_text(59), "59 s");
  EXPECT_EQ(duration_text(250), "4 min 10 s");
  EXPECT_EQ(duration_text(3600 * 5 + 61), "5 h 1 min");
  EXPECT_EQ(duration_text(86400 * 3), "3 d 0 h");
  EXPECT_EQ(age_text(0), "-");
  EXPECT_EQ(seconds_since(~std::uint64_t{0}), 0);  // a clock that was set back
}

TEST(Print, NothingThatATerminalWouldObey) {
  EXPECT_EQ(printable("plain \xe2\x9c\x93 \xf0\x9f\x98\x80"),
            "plain \xe2\x9c\x93 \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\x1b[31m\n\t\x7f"), "\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("a\nb", "\n"), "a\nb");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J")
      << "a control character of two bytes";
  EXPECT_EQ(printable("\xff\xe2\x9c"), "\\xff\\xe2\\x9c") << "no UTF-8";
  Table table({"NAME"});
  table.add({"a\nb"});
  EXPECT_EQ(table.text(), "NAME\na\\x0ab\n");
}

TEST(Print, TableAlignsByColumnsOfTheTerminal) {
  Table table({"NAME", ">BYTES", "X"});
  table.add({"\xe2\x9c\x93", "10", "a"});  // three bytes, one column
  table.add({"longer", "7", ""});
  EXPECT_EQ(table.text(), "NAME    BYTES  X\n\xe2\x9c\x93          10  a\nlonger      7\n");
}

}  // namespace
}  // namespace backstay::bin
