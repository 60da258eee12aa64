// The examples of docs/protocol/placement.md: a line of facts, below it a line for each node.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "protect/placement.h"

namespace backstay::protect {
namespace {

struct Example {
  PlacementFacts facts;
  std::vector<std::string> rows;
};

PlacementFacts parse_facts(const std::string& line) {
  PlacementFacts facts;
  std::string word;
  std::istringstream words(line);
  words >> word >> facts.seed >> word >> facts.replicas >> word;
  while (words >> word) facts.domains.push_back(word == "-" ? "" : word);
  return facts;
}

std::vector<Example> examples() {
  std::ifstream page(BACKSTAY_PAGES_DIR "/placement.md");
  std::vector<Example> found;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("    seed ")) {
      found.push_back({parse_facts(line), {}});
      inside = true;
    } else if (inside && line.starts_with("    ")) {
      found.back().rows.push_back(line.substr(4));
    } else {
      inside = false;
    }
  }
  return found;
}

std::string row_text(NodeId node, std::span<const NodeId> replicas) {
  std::string text = std::to_string(node) + ":";
  for (const NodeId holder : replicas) text += " " + std::to_string(holder);
  return text;
}

TEST(PlacementPage, ItsExamplesAreWhatTheCodeGives) {
  const std::vector<Example> all = examples();
  EXPECT_EQ(all.size(), 3u);
  for (const Example& example : all) {
    const Placement placement = place_replicas(example.facts).value();
    std::vector<std::string> rows;
    for (NodeId node = 0; node < placement.nodes(); ++node) {
      rows.push_back(row_text(node, std::as_const(placement).of(node).subspan(1)));
    }
    EXPECT_EQ(example.rows, rows) << "seed " << example.facts.seed;
  }
}

}  // namespace
}  // namespace backstay::protect
