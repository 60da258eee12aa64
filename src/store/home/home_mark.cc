#include "store/home/home_mark.h"

#include <string>
#include <utility>

#include "format/names.h"

namespace backstay::store {

namespace {

constexpr std::uint64_t mark_bytes_max = std::uint64_t{1} << 32;

std::string mark_name(const std::string& job, VersionNumber version, NodeId node) {
  return format::home_mark_name(format::version_folder(job, version), node);
}

}  // namespace

Result<std::optional<format::HomeMark>> read_home_mark(tier::Tier& tier,
                                                       const format::CommitRecord& record,
                                                       NodeId node, std::string* why_not) {
  const std::string name = mark_name(record.job, record.version, node);
  const auto bytes = tier.get(name, mark_bytes_max);
  if (!bytes.ok()) {
    if (bytes.error().code() != Code::not_found) return bytes.error();
    return std::optional<format::HomeMark>();
  }
  auto mark = format::decode_home_mark(*bytes);
  const bool ours = mark.ok() && mark->job == record.job && mark->version == record.version &&
                    mark->run == record.run && mark->node == node;
  if (ours) return std::optional(std::move(*mark));
  if (why_not != nullptr) {
    *why_not = mark.ok() ? "it belongs to another version" : mark.error().to_string();
  }
  return std::optional<format::HomeMark>();
}

Status write_home_mark(tier::Tier& tier, const format::HomeMark& mark) {
  return tier.put(mark_name(mark.job, mark.version, mark.node), format::encode(mark));
}

}  // namespace backstay::store
