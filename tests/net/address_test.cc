#include "net/address.h"

#include "expect_status.h"

namespace backstay {
namespace {

using testing::fails_with;
using testing::is_ok;

TEST(Address, Parts) {
  for (const auto& [text, host, port] : {std::tuple{"node7:7000", "node7", "7000"},
                                         {"10.0.0.1:1", "10.0.0.1", "1"},
                                         {"[fe80::1]:65535", "fe80::1", "65535"}}) {
    const auto parts = net::split_address(text);
    ASSERT_TRUE(is_ok(parts)) << text;
    EXPECT_EQ(parts->host, host);
    EXPECT_EQ(parts->port, port);
  }
}

TEST(Address, WhatIsNone) {
  for (const char* text : {"", ":", "node", "node:", ":7000", "node:0", "node:65536", "node:-1",
                           "node:7000x", "node: 7000", "fe80::1:7000", "[]:7000", "a:b:1"})
    EXPECT_TRUE(fails_with(net::split_address(text), Code::invalid)) << text;
}

TEST(Address, OfADevice) {
  const auto address = net::address_of_device("lo");
  ASSERT_TRUE(is_ok(address));
  EXPECT_EQ(address->text(), "127.0.0.1:0");
}

TEST(Address, AnUnknownDeviceListsTheOthers) {
  const auto address = net::address_of_device("mlx99");
  ASSERT_TRUE(fails_with(address, Code::not_found));
  EXPECT_NE(address.error().message().find("mlx99"), std::string::npos);
  EXPECT_NE(address.error().message().find("lo"), std::string::npos);
}

TEST(Address, APortInUse) {
  const auto address = net::address_of_device("lo");
  ASSERT_TRUE(is_ok(address));
  const auto first = net::listen_at(&*address, 0);
  ASSERT_TRUE(is_ok(first));
  const std::uint16_t port = net::own_address(first->get()).port();
  const auto second = net::listen_at(&*address, port);
  ASSERT_TRUE(fails_with(second, Code::port_in_use));
  EXPECT_NE(second.error().message().find(std::to_string(port)), std::string::npos);
}

}  // namespace
}  // namespace backstay
