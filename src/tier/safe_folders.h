// Remembers the folders whose names are safe on the disk, so that no tier syncs them again. All
// tiers that a process opens on one folder share this object: after one of them has removed a
// folder, the name that another one makes there is new, and must be synced (dir.h). Any thread.
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
  // The folder's name was synced. `before`: what forgotten() said before that. A folder that may
  // have been removed in between does not count as safe.
  void safe(const std::string& folder, std::uint64_t before) {
    const std::lock_guard lock(mutex_);
    if (before == forgotten_) safe_.insert(folder);
  }
  std::uint64_t forgotten() const {
    const std::lock_guard lock(mutex_);
    return forgotten_;
  }
  // Forgets the folder and all below it. Call it before and after the removal: in between, another
  // tier may find the folder and take it as safe.
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    ++forgotten_;
    std::erase_if(safe_, [&](const std::string& folder) {
      return folder == path || folder.starts_with(path + "/");
    });
  }

  // For a tier's root and the folders above it: a tier of this process has made the folder.
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
  std::uint64_t forgotten_ = 0;  // number of calls of forget()
  std::set<std::string> safe_;
  std::set<std::string> made_;
};

}  // namespace backstay::tier
