#include "capture/files/settings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "capture/files/memory_room.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

char patterns_kept[1 << 16];
constexpr std::size_t path_room = 4096 + 512;

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
      mib != nullptr ? std::strtoull(mib, nullptr, 10) << 20 : memory_for_files();
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
