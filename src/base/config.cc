// Reading order: values from TOML into slots (config_values.h); checks that need more than one key;
// defaults that depend on the machine. The table of keys is config_keys.cc.
#include "base/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/config_environment.h"
#include "base/config_keys.h"
#include "base/config_values.h"
#include "base/edit_distance.h"
#include "base/machine.h"
#include "base/toml_depth.h"

namespace backstay {
namespace {

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

// "backstay.toml:3:8: "
std::string place(const std::string& origin, const toml::source_region& where) {
  return fmt::format("{}:{}:{}: ", origin, where.begin.line, where.begin.column);
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
