// A parity group in memory: segments and parity files of every member, encoded and rebuilt, with
// each byte that is not made left as garbage.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "protect/combination.h"
#include "protect/stripes.h"
#include "support/seed.h"

namespace backstay::protect::test {

// Blocks of one stripe that are made out of others.
struct StripeWork {
  std::vector<Block> reads;  // k
  std::vector<Block> makes;
};

class MemoryGroup {
 public:
  MemoryGroup(ParityShape shape, const std::vector<std::uint64_t>& lengths, std::uint64_t seed)
      : stripes(shape, lengths) {
    backstay::test::Random random(seed);
    for (const std::uint64_t length : lengths) segments.push_back(random_bytes(length, random));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      parities.push_back(random_bytes(stripes.parity_bytes(), random));
    }
  }

  void encode(bool one_by_one) {
    for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
      StripeWork work;
      for (std::uint32_t index = 0; index < stripes.count(); ++index) {
        (stripes.is_parity(index) ? work.makes : work.reads)
            .push_back(stripes.block(stripe, index));
      }
      if (stripes.block_bytes() > 0) carry_out(work, one_by_one);
    }
  }

  // Overwrites what the members had, then makes it out of the first living blocks of each stripe.
  // At most m members.
  void lose_and_rebuild(const std::vector<std::uint32_t>& lost, bool one_by_one) {
    for (const std::uint32_t member : lost) {
      std::ranges::fill(segments[member], std::byte{0xee});
      std::ranges::fill(parities[member], std::byte{0xee});
    }
    for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
      StripeWork work;
      for (std::uint32_t index = 0; index < stripes.count(); ++index) {
        const Block block = stripes.block(stripe, index);
        const bool is_lost = std::ranges::count(lost, block.member) != 0;
        if (is_lost && block.bytes > 0) work.makes.push_back(block);
        if (!is_lost && work.reads.size() < stripes.shape().data) work.reads.push_back(block);
      }
      if (!work.makes.empty()) carry_out(work, one_by_one);
    }
  }

  Stripes stripes;
  std::vector<Buffer> segments;
  std::vector<Buffer> parities;

 private:
  static Buffer random_bytes(std::size_t size, backstay::test::Random& random) {
    Buffer bytes(size);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random.engine()()); });
    return bytes;
  }

  Bytes stored(const Block& block) const {
    const Buffer& file = (stripes.is_parity(block.index) ? parities : segments).at(block.member);
    return Bytes(file).subspan(block.bytes == 0 ? 0 : block.offset, block.bytes);
  }

  void carry_out(const StripeWork& work, bool one_by_one) {
    std::vector<std::uint32_t> reads;
    std::vector<std::uint32_t> makes;
    std::vector<Bytes> sources;
    for (const Block& block : work.reads) {
      reads.push_back(block.index);
      sources.push_back(stored(block));
    }
    std::vector<Buffer> made(work.makes.size(), Buffer(stripes.block_bytes()));
    const std::vector<std::span<std::byte>> outputs(made.begin(), made.end());
    for (const Block& block : work.makes) makes.push_back(block.index);
    const Combination combination = Combination::make(stripes.shape(), reads, makes).value();
    if (one_by_one) {
      for (std::uint32_t i = 0; i < sources.size(); ++i) combination.add(i, sources[i], outputs);
    } else {
      combination.apply(sources, outputs);
    }
    for (std::size_t i = 0; i < made.size(); ++i) store(work.makes[i], made[i]);
  }

  void store(const Block& block, Bytes bytes) {
    Buffer& file = (stripes.is_parity(block.index) ? parities : segments).at(block.member);
    std::ranges::copy(bytes.first(block.bytes),
                      file.begin() + static_cast<std::ptrdiff_t>(block.offset));
    EXPECT_TRUE(std::ranges::all_of(bytes.subspan(block.bytes), [](std::byte byte) {
      return byte == std::byte{0};
    })) << "what lies beyond a segment's end comes out as zeros";
  }
};

}  // namespace backstay::protect::test
