#include "bin/run/storage_here.h"

#include <unistd.h>

#include "base/folders.h"

namespace backstay::bin {

Status check_storage_here(const Config& config, const std::string& job) {
  const std::string& dir = config.storage.dir;
  const Status usable = make_writable_folder(dir, "storage.dir (or BACKSTAY_DIR, or --dir)");
  // The job's own folder in one that belongs to somebody else is enough.
  if (usable.ok() || ::access((dir + "/" + job).c_str(), W_OK | X_OK) == 0) return {};
  return usable.error().context("the folder of the versions cannot be used");
}

}  // namespace backstay::bin
