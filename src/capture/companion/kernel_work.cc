#include "capture/companion/kernel_work.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace backstay::image {

// /proc/PID/stat: `PID (NAME) STATE ..`, and the name may hold anything. The tenth word is the
// number of faults, the fifteenth the time in the kernel.
KernelWork kernel_work_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream words(line.substr(name_end + 1));
  KernelWork work;
  std::string word;
  for (int i = 3; i <= 15 && words >> word; ++i) {
    if (i == 10) work.faults = std::stoull(word);
    if (i == 15) {
      work.seconds = std::stod(word) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }
  }
  return work;
}

double slow_down_s(const KernelWork& before, const KernelWork& after) {
  constexpr double longest_fault_s = 1e-5;
  const auto faults = static_cast<double>(after.faults - std::min(after.faults, before.faults));
  return std::clamp(after.seconds - before.seconds, 0.0, faults * longest_fault_s);
}

}  // namespace backstay::image
