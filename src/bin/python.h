// Subcommands that are written in Python: `backstay NAME ARGS` becomes `python -m backstay.cli NAME ARGS`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace backstay::bin {

struct PythonCommand {
  std::string_view name;
  std::string_view group;  // under which `backstay --help` lists it
  std::string_view summary;
};

const std::vector<PythonCommand>& python_commands();
bool is_python_command(std::string_view name);

// The folder that this program's file lies in, links followed.
std::string program_folder();

// Replaces this process. Returns only on failure (not_found: no interpreter that has the package).
Error run_in_python(const std::vector<std::string>& arguments);

}  // namespace backstay::bin
