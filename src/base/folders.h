// Folders of the user's own: made with mode 0700 from the first moment, parents included.
// Any thread. Blocks on the file system.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace backstay {

// "." for a name without a folder, "/" for one directly below it.
std::string folder_of(const std::string& path);

// mkdir -p. Adds those that it made to `made` (may be null), outermost first; on failure too.
// A parent that refuses mkdir although it is there (read-only, or somebody else's) is good.
Status make_folders(const std::string& path, std::vector<std::string>* made = nullptr);

}  // namespace backstay
