// tree_growth [--json] [--arity K] [NODES ...]: the cost of a tree of NODES nodes
// (docs/protocol/tree.md has the table).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "sim/growth.h"

int main(int argc, char** argv) {
  using namespace backstay::sim;
  CLI::App app("What a tree of agents costs, in rounds and messages");
  bool as_json = false;
  std::uint32_t arity = 16;
  std::vector<std::uint32_t> sizes = {16, 256, 2047, 16384, 100000};
  app.add_flag("--json", as_json, "a list of objects instead of a table");
  app.add_option("--arity", arity, "children of a node")->check(CLI::Range(2, 1024));
  app.add_option("nodes", sizes, "how many nodes, several runs")->check(CLI::Range(2, 1000000));
  CLI11_PARSE(app, argc, argv);

  fmt::print("{}\n", as_json ? "[" : table_head());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Growth growth = grow(sizes[i], arity);
    if (as_json) {
      fmt::print("{}{}\n", json(growth), i + 1 < sizes.size() ? "," : "\n]");
    } else {
      fmt::print("{}\n", table_row(growth));
    }
    std::fflush(stdout);
  }
  return 0;
}
