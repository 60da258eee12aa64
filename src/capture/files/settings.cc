#include "capture/files/settings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "capture/files/memory_room.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

char patterns_kept[1 << 16];
constexpr std::size_t path_room = 4096 + 512;

// A collector reads the configuration as the program's other tools do. Where it all does not fit,
// what is left over is left out.
char environment_kept[1 << 15];
char* environment_pointers[256];

bool is_for_collector(std::string_view variable) {
  constexpr std::string_view wanted[] = {
      "BACKSTAY_", "PATH=",  "HOME=", "USER=", "LOGNAME=",        "XDG_",
      "TMPDIR=",   "SLURM_", "LANG=", "LC_",   "LD_LIBRARY_PATH="};
  if (variable.starts_with("BACKSTAY_CAPTURE=")) return false;
  return std::any_of(std::begin(wanted), std::end(wanted),
                     [&](std::string_view begin) { return variable.starts_with(begin); });
}

char** environment_for_collector() {
  std::size_t used = 0;
  std::size_t count = 0;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::size_t bytes = std::strlen(*variable) + 1;
    if (!is_for_collector(*variable) || used + bytes > sizeof(environment_kept)) continue;
    if (count + 1 >= std::size(environment_pointers)) break;
    environment_pointers[count++] =
        static_cast<char*>(std::memcpy(environment_kept + used, *variable, bytes));
    used += bytes;
  }
  environment_pointers[count] = nullptr;
  return environment_pointers;
}

// "" where it is missing or does not fit.
template <std::size_t size>
void read_text(const char* name, char (&to)[size]) {
  const char* value = std::getenv(name);
  if (value != nullptr && std::strlen(value) < size) std::strcpy(to, value);
}

}  // namespace

PoolSettings read_pool_settings() {
  constexpr std::uint64_t small_kib = 256;
  PoolSettings settings;
  read_text("BACKSTAY_COLLECTOR", settings.socket);
  read_text("BACKSTAY_COLLECTOR_PROGRAM", settings.program);
  if (settings.socket[0] == '\0') return settings;
  const char* kib = std::getenv("BACKSTAY_CAPTURE_POOL_KIB");
  settings.bytes_min = (kib != nullptr ? std::strtoull(kib, nullptr, 10) : small_kib) << 10;
  const char* close = std::getenv("BACKSTAY_CAPTURE_CLOSE");
  settings.until_local = close != nullptr && std::strcmp(close, "local") == 0;
  const char* sync = std::getenv("BACKSTAY_CAPTURE_FSYNC");
  settings.sync_local = sync == nullptr || std::strcmp(sync, "home") != 0;
  const char* root = std::getenv("BACKSTAY_CAPTURE_ROOT");
  settings.root = root != nullptr ? static_cast<pid_t>(std::strtol(root, nullptr, 10)) : 0;
  settings.environment = environment_for_collector();
  return settings;
}

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
