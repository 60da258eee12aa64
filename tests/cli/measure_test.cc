// Measurements end in order when the disk fails.
#include "bin/commands/measure.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/memory.h"

namespace backstay::bin {
namespace {

TEST(Measure, LeavesNothingInFlightAfterAnError) {
  io::MemoryFileSystem fs;
  auto file = fs.open("/f", io::Open::create);
  ASSERT_TRUE(file.ok());
  const auto ring = io::make_memory_ring();
  std::vector<std::byte> memory(8 * 4096);
  Progress progress("test", 0);
  // The file is empty: every read fails.
  const Status read = move_all(*ring, **file, memory, 4096, 64 * 4096, false, progress);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Code::corrupt);
  EXPECT_EQ(ring->in_flight(), 0u);
  EXPECT_TRUE(move_all(*ring, **file, memory, 4096, 64 * 4096, true, progress).ok());
}

}  // namespace
}  // namespace backstay::bin
