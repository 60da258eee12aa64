#include "capture/image/boot/children.h"

#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {

constexpr long look_only = 1 | 4 | 0x01000000 | 0x40000000;  // WNOHANG | WEXITED | WNOWAIT | __WALL

// The kernel's siginfo of a child that has ended.
struct Ended {
  int32_t signal, error, code, zeros;
  int32_t pid;
  uint8_t rest[108];
};

// Of /proc/PID/stat: `PID (NAME) STATE PARENT`, and the name may hold anything.
bool read_child(uint64_t pid, uint64_t parent, Text& name) {
  Text path;
  path << "/proc/" << pid << "/stat";
  Lines lines(path.c_str());
  const char* line = lines.next();
  if (line == nullptr) return false;
  const char* end = nullptr;
  for (const char* at = line; *at != 0; ++at) {
    if (at[0] == ')' && at[1] == ' ') end = at;
  }
  if (end == nullptr || end[2] == 0) return false;
  const char* number = end + 4;
  if (read_decimal(number) != parent) return false;
  char text[64] = {};
  while (*line != 0 && *line != '(') ++line;
  const auto size = static_cast<size_t>(end + 1 - line);
  copy_text(text, size + 1 < sizeof text ? size + 1 : sizeof text, line);
  name << pid << " " << text;
  return true;
}

}  // namespace

void refuse_children(bool named, Trouble& trouble) {
  Ended ended{};
  if (system_call(__NR_waitid, 0, 0, address_of(&ended), look_only) != 0) return;
  if (ended.pid != 0) {
    trouble << "its child " << static_cast<long>(ended.pid)
            << " has ended, and it has not waited for it yet";
    return;
  }
  Text name;
  const auto self = static_cast<uint64_t>(system_call(__NR_getpid));
  if (named) {
    each_number("/proc", [&](uint64_t pid) {
      if (name.empty()) read_child(pid, self, name);
    });
  }
  trouble << "its child " << (name.empty() ? "process" : name.c_str()) << " runs";
}

}  // namespace backstay::image
