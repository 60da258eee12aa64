#include "base/ids.h"

#include <algorithm>
#include <array>
#include <string>

namespace backstay {

namespace {
constexpr std::array<std::string_view, 5> level_names = {"none", "captured", "local", "protected",
                                                         "durable"};
constexpr std::size_t job_name_length_max = 100;

bool allowed_in_job_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}
}  // namespace

std::string_view level_name(Level level) {
  const auto index = static_cast<std::size_t>(level);
  return index < level_names.size() ? level_names[index] : "unknown";
}

Status check_job_name(std::string_view name) {
  if (name.empty()) return Error(Code::invalid, "the job name is empty");
  if (name.size() > job_name_length_max) {
    return Error(Code::invalid, "the job name has " + std::to_string(name.size()) +
                                    " characters, at most 100 are allowed");
  }
  if (name.front() == '.' || name.front() == '-' ||
      !std::all_of(name.begin(), name.end(), allowed_in_job_name)) {
    return Error(Code::invalid, "the job name '" + std::string(name) +
                                    "' must be of letters, digits, '.', '_' and '-', and begin "
                                    "with a letter, a digit or '_'");
  }
  if (name.ends_with(".tmp")) {
    return Error(Code::invalid, "the job name '" + std::string(name) +
                                    "' ends in .tmp, as unfinished files do; choose another one");
  }
  return {};
}

}  // namespace backstay
