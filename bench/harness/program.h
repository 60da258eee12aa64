// What the main functions of all benchmarks have in common.
#pragma once

#include <CLI/CLI.hpp>
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

// Adds the common options to `app`, parses, runs, prints. What main() returns.
int run_program(CLI::App& app, CommonOptions& options, int argc, char** argv,
                const std::function<nlohmann::json()>& run,
                const std::function<void(const nlohmann::json&)>& print_table);

}  // namespace backstay::bench
