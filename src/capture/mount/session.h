// A mount from its beginning to its end.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "capture/mount/keeper.h"

namespace backstay::mount {

struct SessionSettings {
  std::string folder;  // both absolute
  std::string target;
  std::string patterns;  // relative to the folder, one a line; "": all files
  bool write_back = true;
  KeeperSettings keeper;
};

// Mounts, calls `answers` once the mount does, and serves it until it is unmounted or a signal ends
// this process; then all files are at home, or cannot be brought there. Errors: unsupported (it
// cannot be mounted), io.
Status serve(const SessionSettings& settings, const std::function<void()>& answers);

}  // namespace backstay::mount
