#include "base/folders.h"

#include <sys/stat.h>

#include <cerrno>

namespace backstay {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status make_folders(const std::string& path, std::vector<std::string>* made) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) == 0) {
      if (made != nullptr) made->push_back(part);
    } else if (const int why = errno; why != EEXIST) {
      struct stat info {};
      if (::stat(part.c_str(), &info) != 0) return errno_error("create the folder " + part, why);
    }
    if (at == std::string::npos) return {};
  }
}

}  // namespace backstay
