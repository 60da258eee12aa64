#include "tier/name.h"

#include <algorithm>
#include <string>

namespace backstay::tier {

static constexpr std::size_t name_chars_max = 1024;
static constexpr std::size_t part_chars_max = 200;

static bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

static const char* wrong_in(std::string_view part) {
  if (part.empty()) return "has an empty part";
  if (part.size() > part_chars_max) return "has a part of more than 200 characters";
  if (!std::all_of(part.begin(), part.end(), is_allowed)) {
    return "has a character other than A-Z a-z 0-9 . _ -";
  }
  if (is_own_name(part)) return "has a part that begins with a dot or ends in .tmp";
  return nullptr;
}

bool is_own_name(std::string_view part) { return part.starts_with('.') || part.ends_with(".tmp"); }

Status check_name(std::string_view name) {
  if (name.size() > name_chars_max)
    return Error(Code::invalid, "a name of more than 1024 characters");
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (const char* wrong = wrong_in(name.substr(begin, end - begin))) {
      return Error(Code::invalid, "the name \"" + std::string(name) + "\" " + wrong);
    }
    begin = end + 1;
  }
  return {};
}

Status check_prefix(std::string_view prefix) {
  return prefix.empty() ? Status() : check_name(prefix);
}

}  // namespace backstay::tier
