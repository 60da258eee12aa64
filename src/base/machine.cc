#include "base/machine.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace backstay {
namespace {

// Calls `use` with the user's entry, if there is one. getpwuid_r: several threads may ask.
template <typename Use>
void with_user_entry(Use use) {
  std::vector<char> room(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found) == 0 && found)
    use(*found);
}

}  // namespace

std::uint64_t memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  std::uint64_t bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // Inside a container only the group's limit tells how much there really is.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t limit = 0;
    if (std::ifstream file(path); file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::string user_name() {
  std::string name = "uid-" + std::to_string(::geteuid());
  with_user_entry([&](const passwd& entry) { name = entry.pw_name; });
  return name;
}

std::string home_directory() {
  if (const char* home = std::getenv("HOME"); home && *home) return home;
  std::string home;
  with_user_entry([&](const passwd& entry) { home = entry.pw_dir; });
  return home;
}

}  // namespace backstay
