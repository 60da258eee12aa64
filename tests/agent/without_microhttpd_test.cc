#include <gtest/gtest.h>

#include "agent/server/metrics_page.h"

namespace backstay::agent {
namespace {

// The file that stands in where the library is missing.
TEST(MetricsWithoutLibrary, SaysWhatToDo) {
  const auto page = serve_metrics("127.0.0.1", 9464, [] { return std::string(); });
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.error().code(), Code::unsupported);
  EXPECT_NE(page.error().message().find("libmicrohttpd-dev"), std::string::npos);
}

}  // namespace
}  // namespace backstay::agent
