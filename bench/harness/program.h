// What the main functions of all benchmarks have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace backstay::bench {

struct CommonOptions {
  std::string dir;  // default of --dir; must not hold anything else
  int repetitions = 1;
  std::string agent = BACKSTAY_BENCH_AGENT;
  bool json = false;
};

// Options of a benchmark in which `ranks` processes save `mib` MiB each.
struct ShapeOptions : CommonOptions {
  int ranks = 4;
  std::uint64_t mib = 256;
  void add_to(CLI::App& app);
};

struct Program {
  std::function<void(CLI::App&)> add_options;  // the program's own
  std::function<nlohmann::json()> run;
  std::function<void(const nlohmann::json&)> print_table;
};

// Parses the program's own and the common options, runs, prints. What main() returns; never throws.
int run_program(const char* description, CommonOptions& options, int argc, char** argv,
                const Program& program);

}  // namespace backstay::bench
