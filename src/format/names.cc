#include "format/names.h"

#include <fmt/format.h>

#include <charconv>

namespace backstay::format {

namespace {

constexpr std::string_view manifest_ending = ".manifest";
constexpr std::string_view parity_manifest_ending = ".parity-manifest";

std::optional<NodeId> node_in(std::string_view name, std::string_view after) {
  constexpr std::string_view before = "node-";
  if (!name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  NodeId node = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), node);
  if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return node;
}

}  // namespace

std::string version_folder(std::string_view job, VersionNumber version) {
  return fmt::format("{}/{}", job, folder_name(version));
}

std::string folder_name(VersionNumber version) { return fmt::format("v{:016}", version); }

std::optional<VersionNumber> version_of_folder(std::string_view name) {
  if (!looks_like_version(name)) return std::nullopt;
  VersionNumber number = 0;
  (void)std::from_chars(name.data() + 1, name.data() + name.size(), number);
  if (number == 0 || number > version_max || folder_name(number) != name) return std::nullopt;
  return number;
}

bool looks_like_version(std::string_view name) {
  return name.size() > 1 && name.front() == 'v' &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

std::string segment_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}.segment", folder, node);
}

std::string manifest_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}.manifest", folder, node);
}

std::string parity_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}.parity", folder, node);
}

std::string parity_manifest_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}{}", folder, node, parity_manifest_ending);
}

std::optional<NodeId> node_of_manifest(std::string_view name) {
  return node_in(name, manifest_ending);
}

std::optional<NodeId> node_of_parity_manifest(std::string_view name) {
  return node_in(name, parity_manifest_ending);
}

std::string home_mark_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}.home", folder, node);
}

std::string commit_name(std::string_view folder, Level level) {
  return fmt::format("{}/commit.{}", folder, level_name(level));
}

}  // namespace backstay::format
