// The folders of directories whose names are on the disk, so that they need not be synced again.
// All tiers that one process opens on a folder share this object: where one of them removes a
// folder, the name that another one makes there is a new one (dir.h). Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace backstay::tier {

class SafeFolders {
 public:
  bool is_safe(const std::string& folder) const {
    const std::lock_guard lock(mutex_);
    return safe_.contains(folder);
  }
  // `before`: forgotten() from before it was synced. One that may have been removed meanwhile is
  // not taken as safe.
  void safe(const std::string& folder, std::uint64_t before) {
    const std::lock_guard lock(mutex_);
    if (before == forgotten_) safe_.insert(folder);
  }
  std::uint64_t forgotten() const {
    const std::lock_guard lock(mutex_);
    return forgotten_;
  }
  // With all below it. Who removes a folder calls this before and after it: another tier may find
  // the folder in between.
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    ++forgotten_;
    std::erase_if(safe_, [&](const std::string& folder) {
      return folder == path || folder.starts_with(path + "/");
    });
  }

  // Of a root and those above it: made by a tier of this process.
  void made(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    made_.insert(folder);
  }
  bool is_made(const std::string& folder) const {
    const std::lock_guard lock(mutex_);
    return made_.contains(folder);
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t forgotten_ = 0;  // how often something was
  std::set<std::string> safe_;
  std::set<std::string> made_;
};

}  // namespace backstay::tier
