#include "base/config_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <variant>

#include "base/ids.h"
#include "base/machine.h"
#include "base/parity_shape.h"

namespace backstay {

namespace {

std::string full_path(const std::string& path, const std::string& folder) {
  if (path.empty()) return path;
  if (path == "~" || path.starts_with("~/")) return home_directory() + path.substr(1);
  std::error_code failure;
  const auto base = std::filesystem::absolute(folder.empty() ? "." : folder, failure);
  return (base / path).lexically_normal().string();
}

}  // namespace

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

const ConfigSlot* find_key(std::string_view name) {
  for (const ConfigSlot& key : config_table())
    if (key.name == name) return &key;
  return nullptr;
}

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

}  // namespace backstay
