#include "capture/files/memory_room.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

constexpr std::uint64_t unlimited = UINT64_MAX;
constexpr std::size_t path_bytes = 1024;
constexpr std::size_t text_bytes = 4096;

// The names of one version of control groups.
struct Names {
  const char *root, *limit, *used, *inactive, *active;
};
constexpr Names names_v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                            "memory.usage_in_bytes", "\ntotal_inactive_file ",
                            "\ntotal_active_file "};
constexpr Names names_v2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file ",
                            "\nactive_file "};

// The tightest group that this process is in.
struct Group {
  const Names* names = nullptr;
  char folder[path_bytes] = "";
};
Group tightest;

std::string_view read_text(const char* path, char (&text)[text_bytes]) {
  const int fd = raw::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const long bytes = raw::read(fd, text, sizeof(text));
  raw::close(fd);
  return {text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::uint64_t number_at(std::string_view text) {
  std::uint64_t value = 0;
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  for (const char byte : text.substr(first)) {
    if (byte < '0' || byte > '9') break;
    value = value * 10 + static_cast<std::uint64_t>(byte - '0');
  }
  return value;
}

// `absent` where the file is not there, or says "max".
std::uint64_t number_in(const char* folder, const char* name, std::uint64_t absent) {
  char path[path_bytes + 64];
  std::snprintf(path, sizeof(path), "%s/%s", folder, name);
  char text[text_bytes];
  const std::string_view found = read_text(path, text);
  return found.empty() || found[0] < '0' || found[0] > '9' ? absent : number_at(found);
}

std::uint64_t limit_of(const Group& group) {
  return number_in(group.folder, group.names->limit, unlimited);
}

// Pages of files that the kernel would give back count as free.
std::uint64_t room_of(const Group& group) {
  char path[path_bytes + 64];
  std::snprintf(path, sizeof(path), "%s/memory.stat", group.folder);
  char text[text_bytes];
  const std::string_view stat = read_text(path, text);
  const std::uint64_t cached =
      number_behind(stat, group.names->inactive) + number_behind(stat, group.names->active);
  const std::uint64_t used = number_in(group.folder, group.names->used, 0);
  const std::uint64_t held = used > cached ? used - cached : 0;
  const std::uint64_t limit = limit_of(group);
  return limit > held ? limit - held : 0;
}

// `path`, as /proc/self/cgroup has it, and the groups around it.
void look_at_groups(const Names& names, std::string_view path, std::uint64_t& least) {
  Group group;
  group.names = &names;
  while (true) {
    std::snprintf(group.folder, sizeof(group.folder), "%s%.*s", names.root,
                  static_cast<int>(path.size()), path.data());
    if (const std::uint64_t limit = limit_of(group); limit < least) {
      least = limit;
      tightest = group;
    }
    if (path.empty() || path == "/") return;
    path = path.substr(0, path.rfind('/'));
  }
}

// Lines "NUMBER:CONTROLLERS:PATH".
void find_tightest(std::uint64_t machine_bytes) {
  char text[text_bytes];
  std::string_view lines = read_text("/proc/self/cgroup", text);
  std::uint64_t least = machine_bytes;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::size_t first = std::min(line.find(':'), line.size());
    const std::size_t second = std::min(line.find(':', first + 1), line.size());
    if (second == line.size()) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers == "memory") look_at_groups(names_v1, path, least);
    if (controllers.empty()) look_at_groups(names_v2, path, least);
  }
}

std::uint64_t ranks_here() {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    const char* text = std::getenv(name);
    if (text != nullptr && number_at(text) > 0) return number_at(text);
  }
  return 1;
}

}  // namespace

std::uint64_t number_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  return at == std::string_view::npos ? 0 : number_at(text.substr(at + name.size()));
}

std::uint64_t memory_for_files() {
  constexpr std::uint64_t where_unknown = std::uint64_t{1} << 30;
  char text[text_bytes];
  const std::string_view machine = read_text("/proc/meminfo", text);
  if (machine.empty()) return where_unknown / ranks_here();
  find_tightest(number_behind(machine, "MemTotal:") * 1024);
  std::uint64_t room = number_behind(machine, "MemAvailable:") * 1024;
  if (tightest.names != nullptr) room = std::min(room, room_of(tightest));
  return room / 4 / ranks_here();
}

bool control_group_has(std::uint64_t bytes) {
  return tightest.names == nullptr || room_of(tightest) >= bytes;
}

}  // namespace backstay::files
