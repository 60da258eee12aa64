// Held against counting element by element.
#include "client/blocks.h"

#include <gtest/gtest.h>

#include <map>

#include "support/seed.h"

namespace backstay::client {
namespace {

using Index = std::vector<std::uint64_t>;

// Position in a block's memory -> index in the global array.
std::map<std::uint64_t, Index> elements_of(const Block& block) {
  std::map<std::uint64_t, Index> all;
  for (std::uint64_t at = 0; at < block.volume(); ++at) {
    Index index(block.shape.size());
    std::uint64_t rest = at;
    for (std::size_t d = index.size(); d-- > 0; rest /= block.shape[d]) {
      index[d] = block.offset[d] + rest % block.shape[d];
    }
    all[at] = index;
  }
  return all;
}

// from -> to, for every element that both have.
std::map<std::uint64_t, std::uint64_t> common_of(const Block& from, const Block& to) {
  std::map<Index, std::uint64_t> where;
  for (const auto& [at, index] : elements_of(to)) where[index] = at;
  std::map<std::uint64_t, std::uint64_t> common;
  for (const auto& [at, index] : elements_of(from)) {
    if (where.count(index) != 0) common[at] = where[index];
  }
  return common;
}

Block draw_block(backstay::test::Random& random, std::size_t dims) {
  Block block;
  for (std::size_t d = 0; d < dims; ++d) {
    block.offset.push_back(random.between(0, 3));
    block.shape.push_back(random.between(0, 4));
  }
  return block;
}

void expect_runs(const CommonRuns& runs, const std::map<std::uint64_t, std::uint64_t>& expected) {
  std::map<std::uint64_t, std::uint64_t> found;
  std::uint64_t last_end = 0;
  for (std::uint64_t i = 0; i < runs.count(); ++i) {
    const CommonRuns::Run run = runs.at(i);
    EXPECT_GE(run.from, last_end) << "not in order";
    last_end = run.from + run.length;
    for (std::uint64_t at = 0; at < run.length; ++at) found[run.from + at] = run.to + at;
    EXPECT_EQ(runs.first_ending_after(run.from), i);
    EXPECT_EQ(runs.first_ending_after(last_end - 1), i);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(runs.begin(), expected.begin()->first);
  EXPECT_EQ(runs.end(), expected.rbegin()->first + 1);
  EXPECT_EQ(runs.first_ending_after(last_end), runs.count());
}

TEST(Blocks, TheCommonPartIsFoundElementByElement) {
  backstay::test::Random random;
  int met = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    const std::size_t dims = 1 + turn % 4;
    const Block from = draw_block(random, dims);
    const Block to = draw_block(random, dims);
    const auto expected = common_of(from, to);
    const auto common = intersection(from, to);
    ASSERT_EQ(common.has_value(), !expected.empty()) << backstay::test::replay();
    if (!common) continue;
    ++met;
    ASSERT_EQ(common->volume(), expected.size()) << backstay::test::replay();
    expect_runs(CommonRuns(from, to, *common), expected);
    ASSERT_FALSE(HasFailure()) << backstay::test::replay();
  }
  EXPECT_GT(met, 500);
}

TEST(Blocks, WholeRowsAreOneRun) {
  const Block from{{100, 8, 8}, {0, 0, 0}};
  const Block to{{50, 8, 8}, {25, 0, 0}};
  const CommonRuns runs(from, to, *intersection(from, to));
  EXPECT_EQ(runs.count(), 1U);
  EXPECT_EQ(runs.at(0).from, 25U * 64);
  EXPECT_EQ(runs.at(0).to, 0U);
  EXPECT_EQ(runs.at(0).length, 50U * 64);
}

}  // namespace
}  // namespace backstay::client
