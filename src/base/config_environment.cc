#include "base/config_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <variant>

#include "base/config_values.h"
#include "base/edit_distance.h"
#include "base/other_variables.h"

namespace backstay {

std::string environment_name(std::string_view key) {
  std::string name = "BACKSTAY_";
  for (const char c : key) name += c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

namespace {

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

// A section that was left out counts as one letter: BACKSTAY_KEEP is near BACKSTAY_STORAGE_KEEP.
std::size_t distance_without_section(const std::string& name, const std::string& known) {
  const std::string tail = name.substr(name.find('_') + 1);
  std::size_t least = edit_distance(name, known);
  for (std::size_t at = known.find('_'); at != std::string::npos; at = known.find('_', at + 1))
    least = std::min(least, 1 + edit_distance(tail, known.substr(at + 1)));
  return least;
}

}  // namespace

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

}  // namespace backstay
