// The checks of `backstay doctor`. Each says what it found and, if that is not good, what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/folders.h"

namespace backstay::bin {

enum class Health { good, note, bad };        // note: works, but could be better
std::string_view health_name(Health health);  // "ok", "note", "fail"

struct Finding {
  std::string name;
  Health health = Health::good;
  std::string found;
  std::string advice;    // empty: nothing to do
  std::string fix = {};  // lines for a shell that do it; empty: no command can
};

// A command that only root may give.
std::string as_root(const std::string& command);

// The folders of a path that are missing, made as the agent would make them and taken away again.
class TrialFolders {
 public:
  explicit TrialFolders(const std::string& path) : status_(make_folders(path, &made_)) {}
  ~TrialFolders();
  TrialFolders(const TrialFolders&) = delete;
  TrialFolders& operator=(const TrialFolders&) = delete;
  const Status& status() const { return status_; }

 private:
  std::vector<std::string> made_;
  Status status_;
};

// The checks that do not measure. Take milliseconds; leave nothing behind while TrialFolders of
// storage.dir live.
std::vector<Finding> check_machine(const Config& config);

// Writes and reads `mib` MiB in the storage folder.
Finding check_disk_speed(const Config& config, unsigned mib);

}  // namespace backstay::bin
