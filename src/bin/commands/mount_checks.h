// What `backstay mount` looks at before it starts a daemon. Each refusal says what to do.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

struct MountFolders {
  std::string folder;  // absolute, links resolved
  std::string target;
};

// Errors: invalid (folders that do not fit), not_found (one is missing), long_path, busy (it is
// mounted already), permission (TARGET is read-only), unsupported (TARGET is FUSE itself; no
// /dev/fuse, no fusermount3).
Result<MountFolders> check_mount(const std::string& folder, const std::string& target,
                                 const Config& config);

// The folder of a mount that may be dead: links are resolved above it only. Errors: invalid.
Result<std::string> mounted_folder(const std::string& folder);

// Patterns relative to the folder, one a line. Errors: invalid.
Result<std::string> mount_patterns(const std::vector<std::string>& globs,
                                   const std::string& folder);

// "process 12 (bash) works in it; process 14 (dd) has it/file open"; "" where none is found.
std::string users_of(const std::string& folder);

}  // namespace backstay::bin
