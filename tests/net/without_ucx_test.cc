// A build where UCX was not found. The program holds ucx_absent.cc itself, so that ucx.cc stays in
// its archive.
#include "expect_status.h"
#include "net/ucx.h"

namespace backstay {
namespace {

TEST(WithoutUcx, ItIsSaidWhatHappensInstead) {
  const auto lane = net::make_ucx({.devices = "lo", .transports = "tcp"});
  ASSERT_TRUE(testing::fails_with(lane, Code::unsupported));
  EXPECT_NE(lane.error().message().find("over TCP"), std::string::npos);
}

}  // namespace
}  // namespace backstay
