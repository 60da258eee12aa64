#include "capture/files/settings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

char patterns_kept[1 << 16];
constexpr std::size_t path_room = 4096 + 512;

// The number of kB in the line of /proc/meminfo that begins with `name`; 0 if it is not there.
std::uint64_t meminfo_kib(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  std::uint64_t value = 0;
  text.remove_prefix(at + name.size());
  for (const char byte : text) {
    if (byte >= '0' && byte <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(byte - '0');
    } else if (byte != ' ') {
      break;
    }
  }
  return value;
}

std::uint64_t quarter_of_memory() {
  char text[4096];
  const int fd = raw::openat(AT_FDCWD, "/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::uint64_t{1} << 30;
  const long bytes = raw::read(fd, text, sizeof(text));
  raw::close(fd);
  if (bytes <= 0) return std::uint64_t{1} << 30;
  return meminfo_kib({text, static_cast<std::size_t>(bytes)}, "MemAvailable:") * 1024 / 4;
}

}  // namespace

Settings read_settings() {
  Settings settings;
  const char* patterns = std::getenv("BACKSTAY_CAPTURE");
  if (patterns == nullptr || *patterns == '\0') return settings;
  const std::size_t bytes = std::strlen(patterns);
  if (bytes >= sizeof(patterns_kept)) {
    tell("BACKSTAY_CAPTURE is longer than 65535 bytes: no file is captured; use wider patterns", "",
         "");
    return settings;
  }
  std::memcpy(patterns_kept, patterns, bytes);
  settings.patterns = {patterns_kept, bytes};
  const char* mib = std::getenv("BACKSTAY_CAPTURE_MIB");
  settings.memory_bytes_max =
      mib != nullptr ? std::strtoull(mib, nullptr, 10) << 20 : quarter_of_memory();
  return settings;
}

void tell(std::string_view what, std::string_view path, std::string_view then) {
  char line[path_room];
  std::size_t bytes = 0;
  for (const std::string_view part : {std::string_view("backstay: "), path, what, then}) {
    const std::size_t taken = std::min(part.size(), sizeof(line) - 1 - bytes);
    std::memcpy(line + bytes, part.data(), taken);
    bytes += taken;
  }
  line[bytes++] = '\n';
  raw::write(2, line, bytes);
}

}  // namespace backstay::files
