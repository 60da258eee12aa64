// The captured files of a version (docs/format/files.md), as `backstay show` lists them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "format/files.h"
#include "format/object_id.h"

namespace backstay::bin {

struct FoundFile {
  NodeId node = 0;
  format::ObjectId object;
  format::CapturedFile file;
};

// One for each path, sorted by it: where several objects name one, the file that came to the path
// last.
std::vector<FoundFile> latest_of_each_path(std::vector<FoundFile> found);

// A table with a title line; nothing where there are none.
std::string files_text(const std::vector<FoundFile>& files);
nlohmann::ordered_json files_json(const std::vector<FoundFile>& files);

}  // namespace backstay::bin
