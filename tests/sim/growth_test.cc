#include "sim/growth.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace backstay::sim {
namespace {

// What an agent does does not grow with the number of agents; what all do together takes O(log n)
// rounds.
TEST(Growth, RoundsGrowWithTheDepthAndMessagesDoNot) {
  const Growth small = grow(256, 16);
  const Growth large = grow(2047, 16);
  for (const Growth& growth : {small, large}) {
    EXPECT_EQ(growth.barrier.rounds, 2 * growth.depth);
    EXPECT_EQ(growth.commit.rounds, 4 * growth.depth);
    EXPECT_LE(growth.fact.rounds, 2 * growth.depth);
    EXPECT_LE(growth.join.rounds, growth.depth + 2);
    EXPECT_LE(growth.connections_max, 16U + 1);
    EXPECT_LE(growth.repair_connections_max, 16U + 4 + 2);
    EXPECT_LE(growth.barrier.messages_max, 2U * 17);
    EXPECT_LE(growth.tick.messages_max, 2U * 17);
    EXPECT_LE(growth.commit.messages_max, 4U * 17);
  }
  EXPECT_LE(large.join.messages_max, small.join.messages_max + 8);
  EXPECT_LE(large.bytes_per_agent, small.bytes_per_agent * 11 / 10);
}

std::string page() {
  std::ifstream in(BACKSTAY_SOURCE_DIR "/docs/protocol/tree.md");
  EXPECT_TRUE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

// All but the last column.
TEST(Growth, TheTableOfThePageIsWhatTheProgramPrints) {
  const std::string text = page();
  EXPECT_NE(text.find(table_head()), text.npos);
  for (const std::uint32_t nodes : {16U, 256U, 2047U}) {
    std::string row = table_row(grow(nodes, 16));
    row.resize(row.rfind("| ", row.size() - 3) + 1);
    EXPECT_NE(text.find(row), text.npos) << "docs/protocol/tree.md has another row than " << row;
  }
}

TEST(Growth, JsonHasTheSameNumbers) {
  const Growth growth = grow(16, 4);
  const auto parsed = nlohmann::json::parse(json(growth));
  EXPECT_EQ(parsed["nodes"], 16);
  EXPECT_EQ(parsed["arity"], 4);
  EXPECT_EQ(parsed["barrier"]["rounds"], growth.barrier.rounds);
  EXPECT_EQ(parsed["repair_messages_max"], growth.repair_messages_max);
}

}  // namespace
}  // namespace backstay::sim
