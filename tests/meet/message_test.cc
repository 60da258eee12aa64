#include "meet/message.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "expect_status.h"

namespace backstay::meet {
namespace {

using testing::is_ok;

TEST(MeetMessage, ComesBackAsItWas) {
  Buffer bytes(data_bytes_max - 3);
  std::ranges::fill(bytes, std::byte{0x5a});
  const std::vector<Message> all{Join{3, 4, "host-a"},
                                 Placed{1, 2, 0, 3},
                                 Value{7, -5},
                                 data_of(8, bytes),
                                 data_of(9, {}),
                                 Leave{137},
                                 Over{Code::rank_lost, "rank 3 on a is gone"}};
  for (const Message& one : all) {
    const auto packet = encode(one);
    ASSERT_TRUE(is_ok(packet));
    const auto length = message_bytes(Bytes(*packet).first(header_bytes));
    ASSERT_TRUE(is_ok(length));
    EXPECT_EQ(*length, packet->size());
    const auto again = decode(*packet);
    ASSERT_TRUE(is_ok(again));
    EXPECT_EQ(*again, one);
  }
  Buffer out(bytes.size());
  copy_out(data_of(1, bytes), out);
  EXPECT_EQ(out, bytes);
}

TEST(MeetMessage, WhatIsNoneIsRefused) {
  Data lies = data_of(1, Buffer(16));
  lies.bytes = 17;  // and two words
  EXPECT_FALSE(decode(*encode(lies)).ok());
  Buffer packet = *encode(Value{1, 2});
  for (std::size_t at = 0; at < packet.size() - 16; ++at) {
    Buffer damaged = packet;
    damaged[at] ^= std::byte{0xff};
    const auto length = message_bytes(Bytes(damaged).first(header_bytes));
    EXPECT_FALSE(length.ok() && *length == damaged.size() && decode(damaged).ok()) << at;
  }
  packet.pop_back();
  EXPECT_FALSE(decode(packet).ok());
}

}  // namespace
}  // namespace backstay::meet
