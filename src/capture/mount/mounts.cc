#include "capture/mount/mounts.h"

#include <sys/vfs.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace backstay::mount {

namespace {

// Blanks and the like are written as \040.
std::string plain(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(at + 1, 3), nullptr, 8));
      at += 3;
    } else {
      result += text[at];
    }
  }
  return result;
}

}  // namespace

std::vector<Mount> mounts_in(const std::string& mountinfo) {
  std::vector<Mount> found;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, word, folder, kind, source;
    words >> id >> word >> word >> word >> folder;
    while (words >> word && word != "-") {
    }
    words >> kind >> source;
    if (kind == kind_of_mount) found.push_back({id, plain(folder), plain(source)});
  }
  return found;
}

std::vector<Mount> mounts() {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return mounts_in(text.str());
}

bool is_dead(const std::string& folder) {
  struct statfs found = {};
  return ::statfs(folder.c_str(), &found) != 0 && errno == ENOTCONN;
}

}  // namespace backstay::mount
