// The process that a version holds (docs/format/image.md), as `backstay show` tells of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "capture/image/format/image.h"

namespace backstay::bin {

// What it was and what a restart needs: a few lines, then tables of the map and of the files.
std::string image_text(const image::Image& image);
nlohmann::ordered_json image_json(const image::Image& image);

}  // namespace backstay::bin
