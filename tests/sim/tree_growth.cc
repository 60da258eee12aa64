// tree_growth [--json] [--arity K] [NODES ...]: what a tree of so many nodes costs (docs/protocol/tree.md has the table).
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

  std::printf(
      "%s",
      as_json ? "[\n"
              : "| nodes | depth | connections: mean, max | join: rounds, messages mean, max | "
                "tick: messages | "
                "barrier: rounds, messages | commit: rounds, messages | fact: rounds, messages | "
                "root dies: ticks | "
                "inner node dies: ticks | repair: connections max, messages max | KiB an agent |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Growth g = grow(sizes[i], arity);
    if (as_json) {
      fmt::print("{}{}\n", json(g), i + 1 < sizes.size() ? "," : "\n]");
    } else {
      fmt::print(
          "| {} | {} | {:.1f}, {} | {}, {:.1f}, {} | {:.1f}, {} | {}, {:.1f}, {} | {}, {:.1f}, {} "
          "| {}, {:.1f}, {} | {} | {} | {}, {} | {:.1f} |\n",
          g.nodes, g.depth, g.connections_mean, g.connections_max, g.join.rounds,
          g.join.messages_mean, g.join.messages_max, g.tick.messages_mean, g.tick.messages_max,
          g.barrier.rounds, g.barrier.messages_mean, g.barrier.messages_max, g.commit.rounds,
          g.commit.messages_mean, g.commit.messages_max, g.fact.rounds, g.fact.messages_mean,
          g.fact.messages_max, g.root_dies_ticks, g.inner_dies_ticks, g.repair_connections_max,
          g.repair_messages_max, static_cast<double>(g.bytes_per_agent) / 1024);
    }
    std::fflush(stdout);
  }
  return 0;
}
