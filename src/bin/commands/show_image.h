// The process that a version holds (docs/format/image.md), as `backstay show` tells of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/ids.h"
#include "capture/image/format/image.h"

namespace backstay::bin {

// One process of a version, for the list of all of them.
struct SavedProcess {
  Rank rank = 0;
  std::uint32_t pid = 0;
  std::string host;
  std::size_t threads = 0;
  std::uint64_t bytes = 0;  // of its object
};

SavedProcess saved_process(const image::Image& image, Rank rank, std::uint64_t bytes);
std::string processes_text(std::vector<SavedProcess> processes);
nlohmann::ordered_json processes_json(std::vector<SavedProcess> processes);

// Says what the process was and what a restart needs: a few lines, then the map if it is wanted,
// then a table of the files. `whose`: a line that says which of several it is; "" where it is the
// only one.
std::string image_text(const image::Image& image, const std::string& whose, bool with_map);
nlohmann::ordered_json image_json(const image::Image& image);

}  // namespace backstay::bin
