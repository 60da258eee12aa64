// Names of a version's parts in a tier, relative to its root (docs/format/README.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace backstay::format {

inline constexpr std::string_view damaged_name = "damaged";
inline constexpr VersionNumber version_max = 9'999'999'999'999'999;  // 16 digits

std::string version_folder(std::string_view job, VersionNumber version);  // "job/v0000000000000012"
std::string folder_name(VersionNumber version);  // its own name, without the job's
// The number in a folder's own name ("v0000000000000012"), none if we would not have written it so.
std::optional<VersionNumber> version_of_folder(std::string_view name);
// A "v" and digits: somebody's version, but perhaps not one of ours ("v12").
bool looks_like_version(std::string_view name);
std::string segment_name(std::string_view folder, NodeId node);
std::string manifest_name(std::string_view folder, NodeId node);
// The node in a manifest's own name ("node-0000012.manifest"), none for another name.
std::optional<NodeId> node_of_manifest(std::string_view name);
// The parity that a node kept of its group's segments, and what says so (docs/format/parity.md).
std::string parity_name(std::string_view folder, NodeId node);
std::string parity_manifest_name(std::string_view folder, NodeId node);
// The node in a parity manifest's own name, none for another name.
std::optional<NodeId> node_of_parity_manifest(std::string_view name);
std::string commit_name(std::string_view folder, Level level);
// Which captured files of a node's part are not at home (docs/format/home.md).
std::string home_mark_name(std::string_view folder, NodeId node);

}  // namespace backstay::format
