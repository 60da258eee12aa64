// The pool's memory itself; who uses which buffer is in job_test.cc.
#include "agent/memory/pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

namespace backstay::agent {
namespace {

constexpr std::uint64_t pool_bytes = 16u << 20;
constexpr std::size_t page_bytes = 4096;

std::size_t resident_pages(const Pool& pool) {
  std::vector<unsigned char> pages(pool.bytes() / page_bytes);
  if (::mincore(pool.memory().data(), pool.bytes(), pages.data()) != 0) return 0;
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

class PoolTest : public ::testing::TestWithParam<bool> {};

TEST_P(PoolTest, SaysWhenEveryPageWasTouched) {
  auto pool = Pool::create({pool_bytes, 4u << 20, GetParam()});
  ASSERT_TRUE(pool.ok());
  (*pool)->touched().wait(false);
  EXPECT_TRUE((*pool)->touched());
  EXPECT_EQ(resident_pages(**pool), pool_bytes / page_bytes);
}

// Ranks may fill buffers before the pool is touched, and while its pages are joined.
TEST_P(PoolTest, TouchingKeepsWhatWasWrittenMeanwhile) {
  auto pool = Pool::create({pool_bytes, 4u << 20, GetParam()});
  ASSERT_TRUE(pool.ok());
  const auto memory = (*pool)->memory();
  for (std::size_t at = 0; at < memory.size(); ++at)
    memory[at] = static_cast<std::byte>(at * 7 / 5);
  (*pool)->touched().wait(false);
  for (std::size_t at = 0; at < memory.size(); ++at) {
    ASSERT_EQ(memory[at], static_cast<std::byte>(at * 7 / 5)) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(SmallAndJoinedPages, PoolTest, ::testing::Bool());

}  // namespace
}  // namespace backstay::agent
