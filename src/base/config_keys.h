// The table of all keys of the configuration, for config*.cc: the one place that knows name,
// default, range and meaning.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/config.h"

namespace backstay {

// Where a key's value lives in a Config.
using Slot = std::variant<std::string*, double*, std::uint32_t*, std::uint64_t*, bool*>;

struct ConfigSlot {
  std::string_view name;
  Slot (*slot)(Config&);
  double min = 0, max = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices;
  bool is_path = false;
  std::string_view meaning;
};

// In the order of the file. Never destroyed.
const std::vector<ConfigSlot>& config_table();

}  // namespace backstay
