#include "base/machine.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
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

// The number behind `key` in a file of lines "key number ...", or at its start for an empty key.
std::optional<std::uint64_t> number_in(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (key.empty()) return file >> number ? std::optional(number) : std::nullopt;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    if (words >> first && first == key && words >> number) return number;
  }
  return std::nullopt;
}

// The files of the two versions of control groups.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* used;
  const char* droppable;
};
constexpr GroupFiles version_2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles version_1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file"};

struct Group {
  std::string name;
  std::uint64_t limit = 0;
  std::uint64_t left = 0;
};

std::optional<Group> look_at(const std::string& root, const GroupFiles& files,
                             const std::string& name) {
  const std::string folder = root + files.mount + name + "/";
  const auto limit = number_in(folder + files.limit);  // none: "max"
  if (!limit) return std::nullopt;
  const std::uint64_t used = number_in(folder + files.used).value_or(0);
  const std::uint64_t cache = number_in(folder + "memory.stat", files.droppable).value_or(0);
  const std::uint64_t taken = used - std::min(used, cache);
  return Group{name.empty() ? "/" : name, *limit, *limit - std::min(*limit, taken)};
}

// "a,memory,b": the controllers of a line in /proc/self/cgroup.
bool has_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

// Our own groups that limit memory, and those above them.
std::vector<Group> groups(const std::string& root) {
  std::vector<Group> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:/name
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_memory(controllers)) continue;
    std::string name = line.substr(second + 1);
    // Inside a container the name may be of the world outside: then only the topmost is there.
    for (;;) {
      if (name == "/") name.clear();
      const auto group = look_at(root, controllers.empty() ? version_2 : version_1, name);
      if (group) found.push_back(*group);
      if (name.empty()) break;
      name.resize(name.rfind('/') == std::string::npos ? 0 : name.rfind('/'));
    }
  }
  return found;
}

}  // namespace

std::uint64_t memory_bytes(const std::string& root) {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  std::uint64_t bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const Group& group : groups(root)) {
    if (group.limit > 0) bytes = std::min(bytes, group.limit);
  }
  return bytes;
}

MemoryLeft memory_left(const std::string& root) {
  MemoryLeft left;
  if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:")) {
    left = {*kib * 1024, "the machine"};
  }
  for (const Group& group : groups(root)) {
    if (group.left < left.bytes) left = {group.left, "control group " + group.name};
  }
  return left;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string user_name() {
  std::string name = "uid-" + std::to_string(::geteuid());
  with_user_entry([&](const passwd& entry) { name = entry.pw_name; });
  return name;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : "";
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

std::string home_directory() {
  if (const char* home = std::getenv("HOME"); home && *home) return home;
  std::string home;
  with_user_entry([&](const passwd& entry) { home = entry.pw_dir; });
  return home;
}

}  // namespace backstay
