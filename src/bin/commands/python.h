// Subcommands that are written in Python: `backstay NAME ARGS` becomes `python -m backstay.cli NAME
// ARGS`.
//
// The interpreter: in a source tree that of .venv; in an installation $BACKSTAY_PYTHON, else the
// environment that came with the installation (lib/backstay/venv), else python3 if it has the
// packages.
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

// Replaces this process. Returns only on failure (not_found: no interpreter that has the package).
Error run_in_python(const std::vector<std::string>& arguments);

}  // namespace backstay::bin
