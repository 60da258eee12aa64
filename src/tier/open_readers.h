// The files of directories that have an open Reader. All tiers that one process opens on a folder
// share this object, so that none makes a spare of a file that another one reads (dir.h). Any
// thread.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace backstay::tier {

class OpenReaders {
 public:
  void opened(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(path);
  }
  void closed(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.erase(paths_.find(path));
  }
  bool any(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return paths_.contains(path);
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<std::string> paths_;
};

}  // namespace backstay::tier
