#include "base/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace backstay {

bool is_program(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(candidate)) return candidate;
  }
  return "";
}

std::string find_program_from(const std::string& folder, const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  const std::string there = folder + "/" + name;
  return !folder.empty() && is_path && is_program(there) ? there : find_program(name);
}

bool is_program_from(const std::string& folder, const std::string& name) {
  return !find_program_from(folder, name).empty();
}

std::string program_folder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path().string();
}

std::string find_own_program(const std::string& name, const std::string& built_in) {
  const std::string folder = program_folder();
  for (const std::string& step : {std::string("/../libexec/backstay/"), std::string("/"), built_in})
    if (is_program(folder + step + name)) return folder + step + name;
  return "";
}

}  // namespace backstay
