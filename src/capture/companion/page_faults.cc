#include "capture/companion/page_faults.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

namespace backstay::image {

// /proc/PID/stat: `PID (NAME) STATE ..`, and the name may hold anything. The tenth is the number.
std::uint64_t page_faults_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream words(line.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 10; ++i) words >> skipped;
  std::uint64_t faults = 0;
  words >> faults;
  return faults;
}

}  // namespace backstay::image
