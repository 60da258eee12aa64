#include "protect/domains.h"

#include <string_view>
#include <unordered_map>

namespace backstay::protect {

std::vector<std::uint32_t> number_domains(std::span<const std::string> labels) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  std::uint32_t count = 0;
  numbers.reserve(labels.size());
  for (const std::string& label : labels) {
    if (label.empty()) {
      numbers.push_back(count++);
      continue;
    }
    const auto [found, is_new] = known.try_emplace(label, count);
    count += is_new ? 1 : 0;
    numbers.push_back(found->second);
  }
  return numbers;
}

}  // namespace backstay::protect
