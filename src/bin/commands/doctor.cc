// `backstay doctor`: looks at the machine and says, line by line, what to do.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "bin/commands/checks.h"
#include "bin/commands/mpi_checks.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorOptions {
  Settings settings;
  bool quick = false;
  bool fix = false;
};

constexpr unsigned disk_test_mib = 256;

std::string coloured(Health health) {
  std::string name(health_name(health));
  if (!is_terminal(STDOUT_FILENO) || std::getenv("NO_COLOR")) return name;
  const char* colour = health == Health::good ? "32" : health == Health::note ? "33" : "31";
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, name);
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& one : findings) {
    const std::string gap(4 - health_name(one.health).size(), ' ');
    fmt::print("{}{}  {:<11} {}\n", coloured(one.health), gap, one.name, one.found);
    if (!one.advice.empty()) fmt::print("                  -> {}\n", one.advice);
  }
}

// A script to read and to paste: what was found, and the advice, are comments.
void print_fixes(const std::vector<Finding>& findings) {
  bool any = false;
  for (const Finding& one : findings) {
    if (one.advice.empty()) continue;
    any = true;
    fmt::print("# {}: {}\n#   {}\n", one.name, one.found, one.advice);
    if (!one.fix.empty()) fmt::print("{}\n", one.fix);
  }
  if (!any) fmt::print("# nothing to do\n");
}

Json as_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& one : findings)
    list.push_back({{"check", one.name},
                    {"result", health_name(one.health)},
                    {"found", one.found},
                    {"advice", one.advice},
                    {"fix", one.fix}});
  return list;
}

Result<int> doctor(const DoctorOptions& options) {
  std::vector<Finding> findings;
  const auto config = load(options.settings);
  if (config.ok()) {
    const auto file = find_config(options.settings.config_file);
    findings.push_back({"config", Health::good,
                        file.ok() && !file->empty() ? *file : "no file; the defaults hold", ""});
    const TrialFolders storage(config->storage.dir);
    for (Finding& one : check_machine(*config)) findings.push_back(std::move(one));
    for (Finding& one : check_mpis()) findings.push_back(std::move(one));
    if (!options.quick) findings.push_back(check_disk_speed(*config, disk_test_mib));
  } else {
    findings.push_back({"config", Health::bad, config.error().message(),
                        "correct it, then run `backstay doctor` again"});
  }
  const auto bad = std::count_if(findings.begin(), findings.end(),
                                 [](const Finding& f) { return f.health == Health::bad; });
  if (options.settings.json) {
    print_json({{"good", bad == 0}, {"checks", as_json(findings)}});
  } else if (options.fix) {
    print_fixes(findings);
  } else {
    print_text(findings);
    fmt::print("{}\n", bad == 0
                           ? "This machine is ready."
                           : count_text(static_cast<std::uint64_t>(bad), "check") + " failed.");
  }
  return bad == 0 ? exit_ok : exit_failed;
}

}  // namespace

Action declare_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  app.add_flag("--quick", options->quick, "Leave out the short test of the disk's speed");
  app.add_flag("--fix", options->fix, "Print commands that mend what was found; runs none");
  add_settings(app, options->settings, true);
  app.footer(
      "Examples:\n"
      "  backstay doctor\n"
      "  backstay doctor --fix                 commands to read, then to paste\n"
      "  backstay doctor --quick --json | jq '.checks[] | select(.result != \"ok\")'\n"
      "Exit codes: 0 ready, 1 something failed");
  return [options] { return doctor(*options); };
}

}  // namespace backstay::bin
