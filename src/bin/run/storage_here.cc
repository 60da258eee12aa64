#include "bin/run/storage_here.h"

#include <unistd.h>

#include "base/folders.h"

namespace backstay::bin {

Status check_storage_here(const Config& config, const std::string& job) {
  const std::string& dir = config.storage.dir;
  const Status usable = make_writable_folder(dir, "storage.dir (or BACKSTAY_DIR, or --dir)");
  // A job may have a folder of its own where the folder around it belongs to another user.
  if (usable.ok() || ::access((dir + "/" + job).c_str(), W_OK | X_OK) == 0) return {};
  return usable.error().context("the folder of the versions cannot be used");
}

}  // namespace backstay::bin
