#include "base/folders.h"

#include <sys/stat.h>

#include <cerrno>

namespace backstay {

std::string parent_of(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  const auto slash = end == std::string::npos ? 0 : path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  const auto last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

Status make_folders(const std::string& path, std::vector<std::string>* made) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) == 0) {
      if (made != nullptr) made->push_back(part);
    } else {
      const int why = errno;
      struct stat info {};
      if (::stat(part.c_str(), &info) != 0) return errno_error("create the folder " + part, why);
      if (!S_ISDIR(info.st_mode)) return errno_error("create the folder " + part, ENOTDIR);
    }
    if (at == std::string::npos) return {};
  }
}

}  // namespace backstay
