#include "capture/companion/mpi_in_program.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace backstay::image {

std::string mpi_library_of(pid_t process, const std::string& folder) {
  if (folder.empty()) return "";
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find(folder + "/libmpi");
    if (at != std::string::npos) return std::filesystem::path(line.substr(at)).filename().string();
  }
  return "";
}

}  // namespace backstay::image
