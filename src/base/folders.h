// Folders: the one above a path, and making them for the user alone.
// Any thread. Blocks on the file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace backstay {

// How folders are compared, by agents and programs: /a//b/../c/ is /a/c. Links are not followed, as
// that may block.
std::string normal_path(const std::string& path);

// "a/b" of "a/b/c" and of "a/b//c/"; "." of "c"; "/" of "/c" and of "/".
std::string parent_of(const std::string& path);

// mkdir -p, with mode 0700 from the first moment, parents included. Adds those that it made to
// `made` (may be null), outermost first; on failure too. A folder that exists is accepted, also if
// it refuses mkdir (read-only, or another user's). The new names are not safe yet.
Status make_folders(const std::string& path, std::vector<std::string>* made = nullptr);

// The same for a folder that the user chose by setting `keys`, which the message names: a path that
// can never be made is the configuration's fault. Errors: config, permission, no_space, io (the
// disk).
Status make_chosen_folder(const std::string& path, std::string_view keys);

// The same, and that this process may make files in it: a folder that was there may be read-only.
Status make_writable_folder(const std::string& path, std::string_view keys);

}  // namespace backstay
