#include "agent/names.h"

#include <fmt/format.h>

#include <charconv>

namespace backstay::agent {

namespace {
constexpr std::size_t version_digits = 16;
}

std::string version_folder(std::string_view job, VersionNumber version) {
  return fmt::format("{}/v{:016}", job, version);
}

std::optional<VersionNumber> version_of_folder(std::string_view name) {
  if (name.size() != version_digits + 1 || name.front() != 'v') return std::nullopt;
  VersionNumber number = 0;
  const auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string segment_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}.segment", folder, node);
}

std::string manifest_name(std::string_view folder, NodeId node) {
  return fmt::format("{}/node-{:07}.manifest", folder, node);
}

std::string commit_name(std::string_view folder, Level level) {
  return fmt::format("{}/commit.{}", folder, level_name(level));
}

}  // namespace backstay::agent
