// Copies and exchanges of every awkward length and alignment, held to std::copy and checksum().
#include "base/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/checksum.h"

namespace backstay {
namespace {

constexpr std::size_t slack = 256;  // before and behind, must stay as it was

struct Case {
  std::size_t bytes;
  std::size_t from_at;  // offset from a 64-byte boundary
  std::size_t to_at;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::size_t bytes :
       {0u, 1u, 63u, 64u, 127u, 4095u, 4096u, 4097u, 16384u, 16385u, 32768u + 130u, 100'003u}) {
    for (const std::size_t from_at : {0u, 1u, 63u}) {
      for (const std::size_t to_at : {0u, 8u, 61u}) all.push_back({bytes, from_at, to_at});
    }
  }
  return all;
}

// Random bytes; the block of the case lies `slack + at` behind a 64-byte boundary.
class Block {
 public:
  Block(std::size_t bytes, std::size_t at, unsigned seed) : bytes_(bytes), memory_(bytes + 1024) {
    std::mt19937 random(seed);
    for (std::byte& byte : memory_) byte = static_cast<std::byte>(random());
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory_.data()) % 64;
    begin_ = (64 - past) % 64 + slack + at;
  }
  std::span<std::byte> block() { return std::span(memory_).subspan(begin_, bytes_); }
  const std::vector<std::byte>& memory() const { return memory_; }
  std::vector<std::byte> with(Bytes content) const {
    std::vector<std::byte> out = memory_;
    std::copy(content.begin(), content.end(), out.begin() + static_cast<std::ptrdiff_t>(begin_));
    return out;
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
};

class StreamCopy : public testing::TestWithParam<Case> {
 protected:
  Block from{GetParam().bytes, GetParam().from_at, 1};
  Block to{GetParam().bytes, GetParam().to_at, 2};
};

TEST_P(StreamCopy, CopiesTheBlockAndNothingElse) {
  const auto expected = to.with(from.block());
  stream_copy(to.block().data(), from.block());
  EXPECT_EQ(to.memory(), expected);
}

TEST_P(StreamCopy, CopiesTheSameWhileItFetches) {
  const auto expected = to.with(from.block());
  stream_copy_and_fetch_next(to.block().data(), from.block());
  stream_fence();
  EXPECT_EQ(to.memory(), expected);
}

TEST_P(StreamCopy, ExchangesBothBlocksAndNothingElse) {
  const auto expected_to = to.with(from.block());
  const auto expected_from = from.with(to.block());
  stream_exchange(to.block(), from.block());
  EXPECT_EQ(to.memory(), expected_to);
  EXPECT_EQ(from.memory(), expected_from);
}

TEST_P(StreamCopy, TheFusedCopyHasTheChecksumOfTheWhole) {
  const auto expected = to.with(from.block());
  const std::size_t half = from.block().size() / 2;
  Checksum sum;
  sum.update_copy(to.block().data(), from.block().first(half));
  sum.update_copy(to.block().data() + half, from.block().subspan(half));
  EXPECT_EQ(to.memory(), expected);
  EXPECT_EQ(sum.digest(), checksum(from.block()));
}

INSTANTIATE_TEST_SUITE_P(Lengths, StreamCopy, testing::ValuesIn(cases()));

}  // namespace
}  // namespace backstay
