// The mounts of this kind, as the kernel lists them.
#pragma once

#include <string>
#include <vector>

namespace backstay::mount {

inline constexpr const char* kind_of_mount = "fuse.backstay";

struct Mount {
  std::string id;  // the kernel's
  std::string folder;
  std::string target;
};

std::vector<Mount> mounts();
// For tests: of the text of /proc/self/mountinfo.
std::vector<Mount> mounts_in(const std::string& mountinfo);

// Its daemon has died: every call answers ENOTCONN.
bool is_dead(const std::string& folder);

}  // namespace backstay::mount
