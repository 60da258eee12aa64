#include "capture/companion/changed_inputs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <string_view>

namespace backstay::image {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// The kernel makes these up as they are read.
bool is_of_the_kernel(std::string_view path) {
  return path.starts_with("/proc/") || path.starts_with("/sys/");
}

bool was_changed_after(const std::string& path, std::uint64_t time_ns) {
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return false;
  const auto changed_ns = static_cast<std::uint64_t>(now.st_mtim.tv_sec) * second_ns +
                          static_cast<std::uint64_t>(now.st_mtim.tv_nsec);
  return changed_ns > time_ns;
}

struct Uses {
  std::set<std::string> read, written;
  void add(std::string_view path, bool writes) {
    if (!is_of_the_kernel(path)) (writes ? written : read).emplace(path);
  }
};

Uses uses_of(const Image& image) {
  Uses uses;
  for (const Descriptor& one : image.descriptors) {
    if (one.kind != static_cast<std::uint32_t>(DescriptorKind::file)) continue;
    uses.add(image.text(one.path), (one.flags & O_ACCMODE) != O_RDONLY);
  }
  for (const Area& area : image.areas) {
    if (area.kind != static_cast<std::uint32_t>(AreaKind::shared_file)) continue;
    const bool writes =
        (area.protection & protection_write) != 0 || (area.flags & area_may_become_writable) != 0;
    uses.add(image.text(image.files[area.file].path), writes);
  }
  return uses;
}

}  // namespace

std::vector<std::string> changed_inputs(const Image& image) {
  const Uses uses = uses_of(image);
  std::vector<std::string> changed;
  for (const std::string& path : uses.read) {
    if (!uses.written.contains(path) && was_changed_after(path, image.identity.time_ns)) {
      changed.push_back(path);
    }
  }
  return changed;
}

}  // namespace backstay::image
