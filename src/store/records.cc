#include "store/records.h"

#include <algorithm>

#include "base/at_once.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "format/names.h"

namespace backstay::store {

namespace {

Status put(tier::Tier& tier, const std::string& job, const format::CommitRecord& record) {
  const std::string folder = format::version_folder(job, record.version);
  BACKSTAY_TRY(tier.put(format::commit_name(folder, record.level), format::encode(record)));
  failpoint("commit.4");
  return {};
}

}  // namespace

Status find_part(tier::Tier& tier, const std::string& job, const format::CommitRecord& record,
                 std::optional<NodeId> part) {
  const std::string folder = format::version_folder(job, record.version);
  if (part || record.nodes == 1) {
    const auto manifest = tier.open(format::manifest_name(folder, part.value_or(0)));
    return manifest.ok() ? Status() : Status(manifest.error());
  }
  BACKSTAY_ASSIGN(const std::vector<std::string> names, tier.list(folder));
  const bool any = std::ranges::any_of(
      names, [](const std::string& name) { return format::node_of_manifest(name).has_value(); });
  return any ? Status() : Status(Error(Code::not_found, folder));
}

Status put_record(tier::Tier& tier, format::CommitRecord& record) {
  std::vector<Recording> one = {{&record}};
  put_at_once(tier, record.job, one);
  return one.front().done;
}

void put_at_once(tier::Tier& tier, const std::string& job, std::vector<Recording>& records) {
  Pieces pieces;
  for (Recording& one : records) {
    one.record->committed_ns = system_clock().wall_ns();
    pieces.emplace_back([&] { one.done = put(tier, job, *one.record); });
  }
  run_at_once(pieces);
  const Status synced = tier.sync(job);
  for (Recording& one : records) {
    if (one.done.ok()) one.done = synced;
    if (one.done.ok()) failpoint("commit.5");
  }
}

}  // namespace backstay::store
