#include "bin/commands/probe_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/folders.h"
#include "base/machine.h"

namespace backstay::bin {

namespace fs = std::filesystem;

std::string probe_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::string folder = cache && *cache ? cache : home_directory() + "/.cache";
  return folder + "/backstay/probe.json";
}

Result<nlohmann::ordered_json> read_probe() {
  std::ifstream file(probe_path());
  if (!file)
    return Error(Code::not_found, "this machine was not measured yet; run `backstay probe`");
  auto document = nlohmann::ordered_json::parse(file, nullptr, false);
  if (!document.is_object())
    return Error(Code::format, probe_path() + " is not readable; run `backstay probe` again");
  return document;
}

Status prepare_probe() {
  const std::string folder = parent_of(probe_path());
  Status writable = make_folders(folder);
  if (writable.ok() && ::access(folder.c_str(), W_OK | X_OK) != 0)
    writable = errno_error("write to " + folder, errno);
  if (writable.ok()) return {};
  return Error(Code::permission,
               "the result cannot be kept in " + folder + ": " + writable.error().message() +
                   "; set XDG_CACHE_HOME to a folder of yours",
               writable.error().sys_errno());
}

Status write_probe(const nlohmann::ordered_json& document) {
  const std::string path = probe_path(), temporary = path + ".tmp";
  BACKSTAY_TRY(prepare_probe());
  std::error_code failure;
  fs::remove(temporary, failure);  // a link would be followed, a pipe waited for
  std::ofstream file(temporary);
  file << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  file.close();
  if (!file) return errno_error("write " + temporary, errno);
  fs::rename(temporary, path, failure);
  if (failure) return errno_error("rename " + temporary, failure.value());
  return {};
}

double probed_disk_write(const std::string& dir) {
  const auto document = read_probe();
  if (!document.ok()) return 0;
  const auto disk = document->value("disk", nlohmann::ordered_json::object());
  if (disk.value("dir", "") != dir) return 0;
  return disk.value("write_bytes_per_s", 0.0);
}

}  // namespace backstay::bin
