#include "net/secret.h"

#include <algorithm>
#include <string>

#include "expect_status.h"

namespace backstay {
namespace {

using testing::fails_with;
using testing::is_ok;

TEST(Secret, IsReadFromItsDigits) {
  const auto secret = net::Secret::from_hex(std::string(62, '0') + "aF");
  ASSERT_TRUE(is_ok(secret));
  EXPECT_EQ(secret->data()[net::Secret::bytes - 1], 0xaf);
  EXPECT_TRUE(std::all_of(secret->data(), secret->data() + net::Secret::bytes - 1,
                          [](std::uint8_t byte) { return byte == 0; }));
}

TEST(Secret, AnythingElseIsRefused) {
  const std::string good(64, 'a');
  for (const std::string& text : {std::string(), good + "a", good + "\n", std::string(63, 'a'),
                                  std::string(63, 'a') + "g", std::string(64, '\0')}) {
    EXPECT_TRUE(fails_with(net::Secret::from_hex(text), Code::invalid)) << text;
  }
}

TEST(Secret, IsWrittenAsItIsRead) {
  const auto secret = net::Secret::random();
  const auto again = net::Secret::from_hex(secret.hex());
  ASSERT_TRUE(is_ok(again));
  EXPECT_EQ(*again, secret);
}

TEST(Secret, IsAnotherOneEachTime) { EXPECT_FALSE(net::Secret::random() == net::Secret::random()); }

}  // namespace
}  // namespace backstay
