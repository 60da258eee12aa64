// The arithmetic against the formula of the page, byte by byte, at lengths that vector units do
// not like.
#include "protect/combination.h"

#include <gtest/gtest.h>

#include <array>

#include "support/seed.h"

namespace backstay::protect {
namespace {

using Element = unsigned;

Element times(Element a, Element b) {
  Element product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a = (a << 1) ^ ((a & 0x80) != 0 ? 0x11d : 0);
  }
  return product;
}

Element inverse(Element a) {
  Element b = 1;
  while (times(a, b) != 1) ++b;
  return b;
}

std::vector<Buffer> random_blocks(std::size_t count, std::size_t bytes) {
  backstay::test::Random random;
  std::vector<Buffer> blocks(count, Buffer(bytes));
  for (Buffer& one : blocks) {
    for (std::byte& byte : one) byte = static_cast<std::byte>(random.engine()());
  }
  return blocks;
}

// c(q, d) = 1 / ((k + q) xor d)
std::byte parity_byte(const std::vector<Buffer>& data, std::size_t q, std::size_t at) {
  Element sum = 0;
  for (std::size_t d = 0; d < data.size(); ++d) {
    const auto factor = inverse(static_cast<Element>((data.size() + q) ^ d));
    sum ^= times(factor, static_cast<Element>(data[d][at]));
  }
  return static_cast<std::byte>(sum);
}

TEST(Combination, OfDataIsTheSumOfThePage) {
  SCOPED_TRACE(backstay::test::replay());
  const std::array<std::uint32_t, 3> reads{2, 3, 4};
  const std::array<std::uint32_t, 2> makes{0, 1};
  const Combination encoder = Combination::make({3, 2}, reads, makes).value();
  for (std::size_t bytes = 0; bytes <= 300; ++bytes) {
    const std::vector<Buffer> data = random_blocks(3, bytes);
    std::vector<Buffer> once(2, Buffer(bytes, std::byte{0xaa}));
    std::vector<Buffer> in_turn(2, Buffer(bytes));
    encoder.apply(std::vector<Bytes>(data.begin(), data.end()),
                  std::vector<std::span<std::byte>>(once.begin(), once.end()));
    for (const std::uint32_t which : {2u, 0u, 1u}) {
      encoder.add(which, data[which],
                  std::vector<std::span<std::byte>>(in_turn.begin(), in_turn.end()));
    }
    EXPECT_EQ(once, in_turn) << bytes;
    for (std::size_t at = 0; at < bytes; ++at) {
      ASSERT_EQ(once[0][at], parity_byte(data, 0, at)) << at << " of " << bytes;
      ASSERT_EQ(once[1][at], parity_byte(data, 1, at)) << at << " of " << bytes;
    }
  }
}

TEST(Combination, TakesSourcesThatEndEarlyAsZeros) {
  const std::array<std::uint32_t, 2> reads{1, 2};
  const std::array<std::uint32_t, 1> makes{0};
  const Combination encoder = Combination::make({2, 1}, reads, makes).value();
  std::vector<Buffer> data = random_blocks(2, 200);
  Buffer expected(200);
  Buffer found(200, std::byte{0xaa});
  const Bytes early = Bytes(data[1]).first(77);
  const std::array<std::span<std::byte>, 1> output{found};
  encoder.apply(std::array<Bytes, 2>{data[0], early}, output);
  std::fill(data[1].begin() + 77, data[1].end(), std::byte{0});
  const std::array<std::span<std::byte>, 1> whole{expected};
  encoder.apply(std::array<Bytes, 2>{data[0], data[1]}, whole);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace backstay::protect
