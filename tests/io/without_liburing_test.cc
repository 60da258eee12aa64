// A build where liburing was not found. The program holds uring_absent.cc itself, so that uring.cc
// stays in its archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "io/posix.h"
#include "io/ring.h"
#include "temp_directory.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

TEST(WithoutLiburing, ThreadsWriteAndItIsSaidWhy) {
  RingKind kind;
  auto ring = make_ring({}, &kind);
  ASSERT_TRUE(is_ok(ring));
  EXPECT_FALSE(kind.io_uring);
  EXPECT_THAT(kind.why_not, ::testing::HasSubstr("liburing was not found"));
  TempDirectory directory;
  AlignedBytes bytes(8192);
  fill_pattern(bytes.part(0, 4096), 1);
  auto file = posix_filesystem().open(directory.path() + "/f", Open::create_direct);
  ASSERT_TRUE(is_ok(file));
  (*ring)->write(**file, 0, bytes.part(0, 4096), 1);
  ASSERT_TRUE(is_ok((*ring)->reap(true).at(0).status));
  (*ring)->read(**file, 0, bytes.part(4096, 4096), 2);
  ASSERT_TRUE(is_ok((*ring)->reap(true).at(0).status));
  EXPECT_EQ(first_difference(bytes.part(4096, 4096), 1), 4096U);
}

}  // namespace
}  // namespace backstay::io
