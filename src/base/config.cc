// Reading order: the table of keys; values from TOML and from the environment into slots; checks
// that need more than one key; defaults that depend on the machine.
#include "base/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/config_keys.h"
#include "base/edit_distance.h"
#include "base/ids.h"
#include "base/machine.h"
#include "base/other_variables.h"
#include "base/parity_shape.h"
#include "base/toml_depth.h"

namespace backstay {
namespace {

std::string environment_name(std::string_view key) {
  std::string name = "BACKSTAY_";
  for (const char c : key) name += c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

template <typename... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

std::string quoted(const std::string& text) {
  std::ostringstream out;
  const toml::value<std::string> value(text);
  out << toml::toml_formatter(value, toml::format_flags::none);
  return out.str();
}

std::string as_text(const Slot& slot) {
  return std::visit(Overload{[](const std::string* text) { return quoted(*text); },
                             [](const bool* flag) { return std::string(*flag ? "true" : "false"); },
                             [](const auto* number) { return fmt::format("{}", *number); }},
                    slot);
}

std::string_view type_of(const Slot& slot) {
  return std::visit(Overload{[](std::string*) { return "text"; }, [](double*) { return "number"; },
                             [](bool*) { return "boolean"; }, [](auto*) { return "integer"; }},
                    slot);
}

std::string range_of(const ConfigSlot& key, const Slot& slot) {
  if (!key.choices.empty()) return fmt::format("one of {}", fmt::join(key.choices, ", "));
  if (std::holds_alternative<std::string*>(slot) || std::holds_alternative<bool*>(slot)) return "";
  const auto text = [](double bound) {
    return bound == std::floor(bound) ? fmt::format("{:.0f}", bound) : fmt::format("{}", bound);
  };
  return fmt::format("{} to {}", text(key.min), text(key.max));
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// The known key that a person most likely meant. A right key under a wrong section counts as near.
std::string_view nearest_key(const std::string& name) {
  const auto distance = [&](const ConfigSlot& key) {
    const std::size_t whole = edit_distance(name, key.name);
    return std::min(whole, edit_distance(last_part(name), last_part(key.name)) + 1);
  };
  return std::min_element(
             config_table().begin(), config_table().end(),
             [&](const ConfigSlot& a, const ConfigSlot& b) { return distance(a) < distance(b); })
      ->name;
}

bool is_section(std::string_view name) {
  return std::any_of(config_table().begin(), config_table().end(), [&](const ConfigSlot& key) {
    return key.name.substr(0, key.name.find('.')) == name;
  });
}

std::string_view nearest_section(std::string_view name) {
  const auto of = [](const ConfigSlot& key) { return key.name.substr(0, key.name.find('.')); };
  return of(*std::min_element(config_table().begin(), config_table().end(),
                              [&](const ConfigSlot& a, const ConfigSlot& b) {
                                return edit_distance(name, of(a)) < edit_distance(name, of(b));
                              }));
}

const ConfigSlot* find_key(std::string_view name) {
  for (const ConfigSlot& key : config_table())
    if (key.name == name) return &key;
  return nullptr;
}

// "backstay.toml:3:8: "
std::string place(const std::string& origin, const toml::source_region& where) {
  return fmt::format("{}:{}:{}: ", origin, where.begin.line, where.begin.column);
}

// Puts a number into an integer or number slot after its range was checked.
Status put_number(const ConfigSlot& key, const Slot& slot, double value, const std::string& where) {
  if (!(value >= key.min && value <= key.max))
    return Error(Code::config, fmt::format("{}{} is {}; it must be {}", where, key.name, value,
                                           range_of(key, slot)));
  std::visit(
      Overload{[&](double* to) { *to = value; },
               [&](std::uint32_t* to) { *to = static_cast<std::uint32_t>(value); },
               [&](std::uint64_t* to) { *to = static_cast<std::uint64_t>(value); }, [](auto*) {}},
      slot);
  return {};
}

// A relative path counts from `folder`; "~/" is the home directory.
std::string full_path(const std::string& path, const std::string& folder) {
  if (path.empty()) return path;
  if (path == "~" || path.starts_with("~/")) return home_directory() + path.substr(1);
  std::error_code failure;
  const auto base = std::filesystem::absolute(folder.empty() ? "." : folder, failure);
  return (base / path).lexically_normal().string();
}

Status put_text(const ConfigSlot& key, std::string* to, const std::string& value,
                const std::string& where, const std::string& folder) {
  if (!key.choices.empty() &&
      std::find(key.choices.begin(), key.choices.end(), value) == key.choices.end())
    return Error(Code::config, fmt::format("{}{} is \"{}\"; it must be one of {}", where, key.name,
                                           value, fmt::join(key.choices, ", ")));
  if (value.find('\0') != std::string::npos)
    return Error(Code::config, fmt::format("{}{} holds a zero byte", where, key.name));
  if (key.name == "job.name" && !value.empty())
    if (auto fits = check_job_name(value); !fits.ok())
      return Error(Code::config, where + "job.name: " + fits.error().message());
  if (key.name == "protect.parity" && !value.empty())
    if (const auto shape = parse_parity(value); !shape.ok())
      return Error(Code::config, where + shape.error().message());
  *to = key.is_path ? full_path(value, folder) : value;
  return {};
}

Error wrong_type(const ConfigSlot& key, const Slot& slot, std::string_view found,
                 const std::string& where) {
  const std::string_view type = type_of(slot);
  return Error(Code::config,
               fmt::format("{}{} must be {} {}, not {}; for example: {} = {}", where, key.name,
                           type == "integer" ? "an" : "a", type == "text" ? "text in quotes" : type,
                           found, last_part(key.name), as_text(slot)));
}

Status put_node(const ConfigSlot& key, Config& config, const toml::node& node,
                const std::string& origin) {
  const Slot slot = key.slot(config);
  const std::string where = place(origin, node.source());
  std::ostringstream found;
  found << node.type();
  if (auto* text = std::get_if<std::string*>(&slot)) {
    if (!node.is_string()) return wrong_type(key, slot, found.str(), where);
    const auto folder = std::filesystem::path(origin).parent_path().string();
    return put_text(key, *text, node.as_string()->get(), where, folder);
  }
  if (auto* flag = std::get_if<bool*>(&slot)) {
    if (!node.is_boolean()) return wrong_type(key, slot, found.str(), where);
    **flag = node.as_boolean()->get();
    return {};
  }
  if (node.is_integer())
    return put_number(key, slot, static_cast<double>(node.as_integer()->get()), where);
  if (node.is_floating_point() && std::holds_alternative<double*>(slot))
    return put_number(key, slot, node.as_floating_point()->get(), where);
  return wrong_type(key, slot, found.str(), where);
}

Status put_section(Config& config, std::string_view section, const toml::table& values,
                   const std::string& origin) {
  for (const auto& [key_text, node] : values) {
    const std::string name = fmt::format("{}.{}", section, key_text.str());
    const ConfigSlot* key = find_key(name);
    if (!key)
      return Error(Code::config,
                   fmt::format("{}unknown key \"{}\"; did you mean \"{}\"?",
                               place(origin, key_text.source()), name, nearest_key(name)));
    BACKSTAY_TRY(put_node(*key, config, node, origin));
  }
  return {};
}

Status put_tables(Config& config, const toml::table& file, const std::string& origin) {
  for (const auto& [name, node] : file) {
    const std::string where = place(origin, name.source());
    const std::string text(name.str());
    if (is_section(text) && node.is_table()) {
      BACKSTAY_TRY(put_section(config, text, *node.as_table(), origin));
    } else if (is_section(text)) {
      return Error(Code::config,
                   fmt::format("{}{} is a section; write it as [{}]", where, text, text));
    } else if (node.is_table()) {
      return Error(Code::config, fmt::format("{}unknown section [{}]; did you mean [{}]?", where,
                                             text, nearest_section(text)));
    } else {
      const std::string_view near = nearest_key(text);
      return Error(Code::config,
                   fmt::format("{}unknown key \"{}\"; did you mean \"{}\"? It belongs under [{}]",
                               where, text, near, near.substr(0, near.find('.'))));
    }
  }
  return {};
}

Result<double> number_from(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size())
    return Error(Code::config, "not a number");
  return value;
}

Status put_environment_value(const ConfigSlot& key, Config& config, const std::string& variable,
                             const std::string& value) {
  const Slot slot = key.slot(config);
  const std::string where = "environment variable " + variable + ": ";
  if (auto* text = std::get_if<std::string*>(&slot)) return put_text(key, *text, value, where, "");
  if (auto* flag = std::get_if<bool*>(&slot)) {
    if (value != "true" && value != "false" && value != "1" && value != "0")
      return Error(Code::config, fmt::format("{}\"{}\" must be true or false", where, value));
    **flag = value == "true" || value == "1";
    return {};
  }
  const auto number = number_from(value);
  if (!number.ok() || (!std::holds_alternative<double*>(slot) && *number != std::floor(*number)))
    return Error(Code::config, fmt::format("{}\"{}\" is not {} {}", where, value,
                                           type_of(slot) == "integer" ? "an" : "a", type_of(slot)));
  return put_number(key, slot, *number, where);
}

std::vector<std::string> variables_of_keys() {
  std::vector<std::string> names{"BACKSTAY_JOB", "BACKSTAY_DIR", "BACKSTAY_CONFIG"};
  for (const ConfigSlot& key : config_table()) names.push_back(environment_name(key.name));
  return names;
}

// The names in the environment that begin as ours do.
std::vector<std::string> our_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("BACKSTAY_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::pair<std::string, std::size_t> nearest(const std::string& name,
                                            const std::vector<std::string>& known) {
  const auto distance = [&name](const std::string& other) { return edit_distance(name, other); };
  const std::string& near = *std::ranges::min_element(known, {}, distance);
  return {near, distance(near)};
}

// BACKSTAY_STORAGE_KEPT names a section of ours but no key, and BACKSTAY_DIRR is one letter away
// from a name of ours: both are typing errors, not variables of another program.
Status refuse_unknown_variables() {
  const std::vector<std::string> keys = variables_of_keys();
  std::vector<std::string> sections;
  for (const ConfigSlot& key : config_table())
    sections.push_back(environment_name(key.name.substr(0, key.name.find('.') + 1)));
  for (const std::string& name : our_environment()) {
    if (std::ranges::count(other_variables, name) + std::ranges::count(keys, name) > 0) continue;
    const auto [near, away] = nearest(name, keys);
    const bool has_section = std::ranges::any_of(
        sections, [&name](const std::string& section) { return name.starts_with(section); });
    if (away == 1 || has_section)
      return Error(Code::config, fmt::format("unknown environment variable {}; did you mean {}? "
                                             "Unset or rename one that is not meant for Backstay",
                                             name, near));
  }
  return {};
}

Status put_environment(Config& config) {
  BACKSTAY_TRY(refuse_unknown_variables());
  const auto take = [&](const ConfigSlot& key, const std::string& variable) -> Status {
    const char* value = std::getenv(variable.c_str());
    return value ? put_environment_value(key, config, variable, value) : Status();
  };
  for (const ConfigSlot& key : config_table()) BACKSTAY_TRY(take(key, environment_name(key.name)));
  BACKSTAY_TRY(take(*find_key("job.name"), "BACKSTAY_JOB"));
  return take(*find_key("storage.dir"), "BACKSTAY_DIR");
}

Status check_together(const Config& config, const std::string& origin) {
  const std::string where = origin.empty() ? "" : origin + ": ";
  if (config.checkpoint.policy == "calls" && config.checkpoint.every_calls == 0)
    return Error(Code::config,
                 where + "checkpoint.policy is \"calls\": set checkpoint.every_calls to 1 or more");
  if (config.pool.size_mib != 0 && config.pool.size_mib < 2 * config.pool.buffer_mib)
    return Error(Code::config,
                 fmt::format("{}pool.size_mib is {}; it must hold at least two buffers of "
                             "pool.buffer_mib = {}: set it to {} or more",
                             where, config.pool.size_mib, config.pool.buffer_mib,
                             2 * config.pool.buffer_mib));
  if (config.network.heartbeat_s > config.network.dead_after_s)
    return Error(
        Code::config,
        fmt::format("{}network.heartbeat_s is {} and network.dead_after_s is {}: a sign of "
                    "life would come later than an agent is taken for dead; set "
                    "network.heartbeat_s to {} or less, or network.dead_after_s to {} or "
                    "more",
                    where, config.network.heartbeat_s, config.network.dead_after_s,
                    config.network.dead_after_s, config.network.heartbeat_s));
  return {};
}

void fill_defaults(Config& config) {
  if (config.storage.dir.empty()) config.storage.dir = "/var/tmp/backstay-" + user_name();
  if (config.pool.size_mib == 0) {
    const std::uint64_t sixteenth = memory_bytes() / 16 / (1024 * 1024);
    const std::uint64_t least = std::uint64_t{2} * config.pool.buffer_mib;
    config.pool.size_mib = std::max(least, std::min<std::uint64_t>(1024, sixteenth));
  }
}

// Far more than our keys have. The parser limits only how deep values nest, to 256.
constexpr std::size_t key_parts_max = 8;

Result<Config> read_text(const std::string& text, const std::string& origin) {
  if (const auto line = line_of_deep_key(text, key_parts_max))
    return Error(Code::config, fmt::format("{}:{}: a key has more than {} parts with dots between; "
                                           "ours are a section and a name, as storage.dir",
                                           origin, *line, key_parts_max));
  Config config;
  try {
    const toml::table file = toml::parse(text, origin);
    BACKSTAY_TRY(put_tables(config, file, origin));
  } catch (const toml::parse_error& failure) {
    return Error(Code::config,
                 place(origin, failure.source()) + std::string(failure.description()));
  } catch (const std::exception& failure) {
    return Error(Code::config, origin + ": " + failure.what());
  }
  return config;
}

Result<std::string> read_file(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))  // opens, and reads as empty
    return Error(Code::config, path + " is a directory, not a configuration");
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error("open the configuration " + path, errno);
  constexpr std::size_t bytes_max = 1 << 20;
  std::string text(bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return errno_error("read the configuration " + path, errno);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > bytes_max)
    return Error(Code::config, path + " has more than 1 MiB: it is no configuration");
  return text;
}

}  // namespace

std::vector<ConfigKey> config_keys() {
  Config initial;
  std::vector<ConfigKey> keys;
  for (const ConfigSlot& key : config_table()) {
    const Slot slot = key.slot(initial);
    keys.push_back({std::string(key.name), std::string(type_of(slot)), as_text(slot),
                    range_of(key, slot), std::string(key.meaning), environment_name(key.name)});
  }
  return keys;
}

std::vector<std::string> config_values(const Config& config) {
  Config copy = config;
  std::vector<std::string> values;
  for (const ConfigSlot& key : config_table()) values.push_back(as_text(key.slot(copy)));
  return values;
}

std::vector<std::pair<std::string, std::string>> agent_settings(const Config& config) {
  constexpr std::string_view of_agents[] = {
      "durable.stop_timeout_s", "pool.size_mib",  "pool.buffer_mib",   "pool.huge_pages",
      "writer.depth",           "writer.direct",  "writer.io_uring",   "agent.log_file",
      "agent.log_level",        "agent.nice",     "agent.idle_exit_s", "metrics.address",
      "metrics.port",           "network.device", "network.port",      "network.dead_after_s",
      "network.heartbeat_s",    "protect.buffers"};
  Config copy = config;
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string_view name : of_agents) {
    const ConfigSlot* key = find_key(name);
    BACKSTAY_CHECK(key != nullptr);
    all.emplace_back(name, as_text(key->slot(copy)));
  }
  return all;
}

namespace {

// A section that was left out counts as one letter: BACKSTAY_KEEP is near BACKSTAY_STORAGE_KEEP.
std::size_t distance_without_section(const std::string& name, const std::string& known) {
  const std::string tail = name.substr(name.find('_') + 1);
  std::size_t least = edit_distance(name, known);
  for (std::size_t at = known.find('_'); at != std::string::npos; at = known.find('_', at + 1))
    least = std::min(least, 1 + edit_distance(tail, known.substr(at + 1)));
  return least;
}

}  // namespace

std::vector<std::string> unknown_variables() {
  std::vector<std::string> known = variables_of_keys();
  known.insert(known.end(), other_variables.begin(), other_variables.end());
  std::vector<std::string> warnings;
  for (const std::string& name : our_environment()) {
    const bool of_tests = std::ranges::any_of(
        prefixes_of_tests, [&name](const char* prefix) { return name.starts_with(prefix); });
    if (of_tests || std::ranges::count(known, name) > 0) continue;
    const std::string& near = *std::ranges::min_element(
        known, {}, [&name](const auto& other) { return distance_without_section(name, other); });
    warnings.push_back(
        fmt::format("the environment variable {} means nothing to Backstay; the "
                    "nearest that does is {} (backstay config --explain lists all)",
                    name, near));
  }
  return warnings;
}

Result<Config> load_config(const std::string& path) {
  Config config;
  if (!path.empty()) {
    BACKSTAY_ASSIGN(const std::string text, read_file(path));
    BACKSTAY_ASSIGN(config, read_text(text, path));
  }
  BACKSTAY_TRY(put_environment(config));
  BACKSTAY_TRY(check_together(config, path));
  fill_defaults(config);
  BACKSTAY_TRY(check_paths(config));
  return config;
}

Result<Config> parse_config(const std::string& text, const std::string& origin) {
  BACKSTAY_ASSIGN(Config config, read_text(text, origin));
  BACKSTAY_TRY(check_together(config, origin));
  fill_defaults(config);
  BACKSTAY_TRY(check_paths(config));
  return config;
}

}  // namespace backstay
