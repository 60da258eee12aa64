// A subcommand of `backstay`: one file each, listed in the table of backstay.cc.
//
// declare() adds options and examples to the parser and returns what to do once the command line
// has been read. The action prints its result to stdout and returns an exit code (exit_code.h);
// an Error that it returns is printed by main, to stderr and, with --json, to stdout too.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace backstay::bin {

using Action = std::function<Result<int>()>;

struct Command {
  std::string_view name;
  std::string_view group;
  std::string_view summary;
  Action (*declare)(CLI::App& app);
};

Action declare_agent(CLI::App& app);
Action declare_checkpoint(CLI::App& app);
Action declare_completion(CLI::App& app);
Action declare_config(CLI::App& app);
Action declare_copy(CLI::App& app);
Action declare_doctor(CLI::App& app);
Action declare_exec(CLI::App& app);
Action declare_ls(CLI::App& app);
Action declare_mount(CLI::App& app);
Action declare_probe(CLI::App& app);
Action declare_rm(CLI::App& app);
Action declare_run(CLI::App& app);
Action declare_show(CLI::App& app);
Action declare_status(CLI::App& app);
Action declare_top(CLI::App& app);
Action declare_unmount(CLI::App& app);
Action declare_verify(CLI::App& app);
Action declare_version(CLI::App& app);

}  // namespace backstay::bin
