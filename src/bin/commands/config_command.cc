// `backstay config`: the settings that hold here and their file; --explain: every key and its
// meaning; --write: a file to begin with.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "bin/commands/config_write.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

struct ConfigOptions {
  Settings settings;
  bool explain = false;
  bool markdown = false;
  bool file = false;
  bool write = false;
  std::string write_to;
};

std::string section_of(const ConfigKey& key) { return key.name.substr(0, key.name.find('.')); }
std::string name_of(const ConfigKey& key) { return key.name.substr(key.name.find('.') + 1); }

// A whole file, ready to be edited: `with_comments` puts meaning and range above each key.
void print_toml(const std::vector<std::string>& values, bool with_comments) {
  const auto keys = config_keys();
  std::string section;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (section_of(keys[i]) != section) {
      fmt::print("{}[{}]\n", section.empty() ? "" : "\n", section_of(keys[i]));
      section = section_of(keys[i]);
    }
    if (with_comments) {
      const std::string range = keys[i].range.empty() ? "" : ", " + keys[i].range;
      fmt::print("# {}\n# ({}{}; {})\n", keys[i].meaning, keys[i].type, range, keys[i].environment);
    }
    fmt::print("{} = {}\n", name_of(keys[i]), values[i]);
  }
}

constexpr const char* page_top = R"(# Configuration

<!-- Made by `backstay config --explain --markdown`; a test holds the two together. -->

No key has to be set. Settings are in one TOML file: the one given with `--config` or to
`backstay_init()`, else `$BACKSTAY_CONFIG`, else `./backstay.toml`, else `~/.config/backstay.toml`.
The first that exists is read, the others are not.

Every key can be set by an environment variable too, which wins over the file. `BACKSTAY_JOB` and
`BACKSTAY_DIR` are short names for `BACKSTAY_JOB_NAME` and `BACKSTAY_STORAGE_DIR`. Paths may begin
with `~/`; a relative path in the file counts from the file's folder.

An unknown key, a wrong type or a value out of range is an error that names file, line and column,
and the nearest key that exists. `backstay config` prints the settings of the place where it is
called; `backstay config --write` writes a commented file to begin with.

Ranks of one node share an agent, a folder and a pool, so `agent.socket` and `storage.dir` must be
the same for all of them; nodes may differ. `init` refuses ranks that differ and names both values.
The values of rank 0 for `job`, `durable`, `protect` and `checkpoint` hold for all ranks. A variable
that begins with `BACKSTAY_` and has no meaning gets a warning that names the nearest one that has.
)";

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

void print_markdown() {
  fmt::print("{}", page_top);
  std::string section;
  for (const ConfigKey& key : config_keys()) {
    if (section_of(key) != section) {
      section = section_of(key);
      fmt::print(
          "\n## [{}]\n\n| key | default | type | meaning | environment |\n|---|---|---|---|---|\n",
          section);
    }
    const std::string range = key.range.empty() ? "" : ", " + key.range;
    fmt::print("| `{}` | `{}` | {}{} | {} | `{}` |\n", name_of(key), key.initial, key.type,
               cell(range), cell(key.meaning), key.environment);
  }
}

nlohmann::ordered_json as_json(const std::string& file, const std::vector<std::string>& values) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  const auto known = config_keys();
  for (std::size_t i = 0; i < known.size(); ++i)
    keys.push_back({{"name", known[i].name},
                    {"type", known[i].type},
                    // Text is quoted as in TOML's basic strings, which is JSON's way too.
                    {"value", nlohmann::ordered_json::parse(values[i])},
                    {"default", nlohmann::ordered_json::parse(known[i].initial)},
                    {"range", known[i].range},
                    {"environment", known[i].environment},
                    {"meaning", known[i].meaning}});
  return {{"file", file}, {"keys", keys}};
}

Result<int> write(const ConfigOptions& options) {
  const std::string path = options.write_to.empty() ? "backstay.toml" : options.write_to;
  BACKSTAY_ASSIGN(Config config, load(options.settings));
  const MachineFacts facts = look_at_machine(config);
  BACKSTAY_TRY(write_new_file(path, first_config(config, facts)));
  if (options.settings.json) print_json({{"file", path}});
  const auto asks =
      std::ranges::count_if(facts.findings, [](const Finding& one) { return !one.advice.empty(); });
  remark(
      fmt::format("wrote {}{}; programs that start beside it read it, others with --config or "
                  "BACKSTAY_CONFIG",
                  path,
                  asks == 0 ? ""
                            : fmt::format(" (its first lines hold advice of `backstay "
                                          "doctor`: {})",
                                          count_text(asks, "check"))));
  return exit_ok;
}

Result<int> show(const ConfigOptions& options) {
  if (options.write) return write(options);
  if (options.markdown) {
    print_markdown();
    return exit_ok;
  }
  if (options.explain && !options.settings.json) {
    print_toml(config_values(Config{}), true);
    return exit_ok;
  }
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  if (options.file) {
    if (file.empty())
      return Error(Code::not_found, "there is no configuration file; the defaults hold");
    fmt::print("{}\n", file);
    return exit_ok;
  }
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  if (options.settings.json) {
    print_json(as_json(file, config_values(config)));
    return exit_ok;
  }
  fmt::print("# from {} and the environment\n", file.empty() ? "the defaults" : file);
  print_toml(config_values(config), false);
  return exit_ok;
}

}  // namespace

Action declare_config(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  add_settings(app, options->settings, false);
  app.add_flag("--explain", options->explain, "Print every key with default, range and meaning");
  app.add_flag("--markdown", options->markdown, "Print the page of the guide (with --explain)")
      ->needs("--explain");
  auto* to = app.add_option("--write", options->write_to,
                            "Write a commented file for this machine, out of what doctor finds and "
                            "probe measured; default: backstay.toml")
                 ->type_name("FILE")
                 ->expected(0, 1)
                 ->excludes("--explain");
  app.add_flag("--file", options->file, "Print only which file is read");
  app.footer(
      "Examples:\n"
      "  backstay config                            what holds here\n"
      "  backstay config --write                    backstay.toml, commented, for this machine\n"
      "  backstay config --explain                  every key and its meaning\n"
      "  backstay config --file                     which file is read\n"
      "Exit codes: 0 ok, 2 the configuration is wrong, or --write's file exists, 3 --file and "
      "there is none");
  return [options, to] {
    options->write = to->count() > 0;
    return show(*options);
  };
}

}  // namespace backstay::bin
