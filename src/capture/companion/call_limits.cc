#include "capture/companion/call_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace backstay::image {

namespace {

struct Limits {
  int mode = 0;     // 0: none, 1: strict, 2: filters
  int filters = 0;  // kernels before 5.9 do not count them
};

Limits limits_of(const std::string& thread) {
  std::ifstream file(thread + "/status");
  Limits limits;
  std::string word;
  while (file >> word) {
    if (word == "Seccomp:") file >> limits.mode;
    if (word == "Seccomp_filters:") file >> limits.filters;
  }
  return limits;
}

}  // namespace

bool limits_its_calls(pid_t process) {
  const Limits ours = limits_of("/proc/self");
  std::error_code ended;
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", process), ended);
  return std::any_of(begin(threads), end(threads), [&ours](const auto& thread) {
    const Limits its = limits_of(thread.path().string());
    return (its.mode > 0 && its.mode != ours.mode) || its.filters > ours.filters;
  });
}

}  // namespace backstay::image
