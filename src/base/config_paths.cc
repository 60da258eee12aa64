// Where the configuration's file is looked for, and which of its folders may not lie in another.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/config.h"
#include "base/machine.h"

namespace backstay {

Result<std::string> find_config(const std::string& path) {
  const auto exists = [](const std::string& file) { return ::access(file.c_str(), F_OK) == 0; };
  const auto named = [&](const std::string& file, const std::string& by) -> Result<std::string> {
    if (exists(file)) return file;
    return Error(Code::config, fmt::format("the configuration {} ({}) does not exist", file, by));
  };
  if (!path.empty()) return named(path, "named by the caller");
  if (const char* variable = std::getenv("BACKSTAY_CONFIG"); variable && *variable)
    return named(variable, "named by BACKSTAY_CONFIG");
  for (const std::string& file :
       {std::string("./backstay.toml"), home_directory() + "/.config/backstay.toml"})
    if (exists(file)) return file;
  return std::string();
}

Status check_paths(const Config& config) {
  const std::string& durable = config.durable.dir;
  const auto inside = [](const std::string& folder, const std::string& of) {
    return (folder + "/").starts_with(of.ends_with('/') ? of : of + "/");
  };
  if (durable.empty() ||
      !(inside(durable, config.storage.dir) || inside(config.storage.dir, durable))) {
    return {};
  }
  return Error(
      Code::config,
      fmt::format("durable.dir is {} and storage.dir is {}: one must not lie in the other; set "
                  "durable.dir to a directory on shared storage",
                  durable, config.storage.dir));
}

}  // namespace backstay
