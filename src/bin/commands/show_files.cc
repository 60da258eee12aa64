#include "bin/commands/show_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "bin/parts/print.h"
#include "format/extent_map.h"

namespace backstay::bin {

namespace {

// What it takes in the object: holes take nothing, and what was overwritten does not count.
std::uint64_t written_bytes(const format::CapturedFile& file) {
  std::uint64_t bytes = 0;
  for (const format::Extent& extent : format::ExtentMap(file.extents).extents()) {
    bytes += extent.bytes;
  }
  return bytes;
}

// The one that counts last.
auto age(const FoundFile& found) {
  return std::tuple(found.file.placed_ns, found.node, found.object.key());
}

}  // namespace

std::vector<FoundFile> latest_of_each_path(std::vector<FoundFile> found) {
  std::sort(found.begin(), found.end(), [](const FoundFile& a, const FoundFile& b) {
    if (a.file.path != b.file.path) return a.file.path < b.file.path;
    return age(a) > age(b);
  });
  const auto same = [](const FoundFile& a, const FoundFile& b) {
    return a.file.path == b.file.path;
  };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

std::string files_text(const std::vector<FoundFile>& files) {
  if (files.empty()) return "";
  Table table({"FILE", "WRITTEN BY", "NODE", "MODE", ">BYTES", ">WRITTEN"});
  for (const FoundFile& found : files) {
    table.add({found.file.path, format::owner_name(found.object), std::to_string(found.node),
               fmt::format("{:04o}", found.file.mode), bytes_text(found.file.bytes),
               bytes_text(written_bytes(found.file))});
  }
  return "\n" + table.text();
}

nlohmann::ordered_json files_json(const std::vector<FoundFile>& files) {
  auto list = nlohmann::ordered_json::array();
  for (const FoundFile& found : files) {
    const bool of_rank = found.object.owner == format::OwnerKind::rank;
    list.push_back({{"path", printable(found.file.path)},
                    {of_rank ? "rank" : "writer", found.object.number},
                    {"node", found.node},
                    {"mode", found.file.mode},
                    {"bytes", found.file.bytes},
                    {"written_bytes", written_bytes(found.file)},
                    {"extents", found.file.extents.size()},
                    {"modified_s", found.file.modified.seconds},
                    {"modified_ns", found.file.modified.nanoseconds}});
  }
  return list;
}

}  // namespace backstay::bin
