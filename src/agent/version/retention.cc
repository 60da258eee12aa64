#include "agent/version/retention.h"

#include <algorithm>

namespace backstay::agent {

namespace {

StoredVersion recorded_at(VersionNumber version, Level level) {
  StoredVersion stored;
  stored.version = version;
  stored.level = level;
  return stored;
}

// Of what is damaged and has no valid record here nothing is removed: it may be all that is left.
bool counts(const StoredVersion& stored) { return stored.level != Level::none || stored.in_doubt; }

// What a version that stays needs stays too, and what that needs.
template <typename IsNeeded>
void keep_needed(std::vector<VersionNumber>& out, const IsNeeded& is_needed) {
  for (;;) {
    const auto stays = std::ranges::find_if(out, is_needed);
    if (stays == out.end()) return;
    out.erase(stays);
  }
}

std::vector<VersionNumber> expired_with(const VersionTable& table, std::uint32_t keep,
                                        const std::vector<VersionNumber>& recorded_soon) {
  std::vector<StoredVersion> all;
  for (const VersionNumber number : recorded_soon) {
    all.push_back(recorded_at(number, Level::local));
  }
  for (const auto& [number, row] : table.rows()) {
    const bool soon = std::ranges::find(recorded_soon, number) != recorded_soon.end();
    if (row.disk && !row.removing && !soon && counts(*row.disk)) all.push_back(*row.disk);
  }
  for (const auto& [number, copies] : table.copies()) {
    if (!is_leaving(table, number)) all.push_back(copies);
  }
  std::ranges::sort(all, {}, &StoredVersion::version);
  std::vector<VersionNumber> out = expired(all, keep, table.newest_announced());
  // One that is on its way to a higher level: others may hear of that level before it is removed.
  const auto rises = [&](VersionNumber version) {
    const VersionRow* row = table.find(version);
    return row != nullptr && row->recording > 0 && row->disk->level != Level::none;
  };
  std::erase_if(out,
                [&](VersionNumber version) { return table.is_pinned(version) || rises(version); });
  const auto is_needed = [&](VersionNumber version) {
    const VersionRow* row = table.find(version);
    const auto copies = table.copies().find(version);
    const RunId run = row != nullptr && row->disk      ? row->disk->record.run
                      : copies != table.copies().end() ? copies->second.record.run
                                                       : 0;
    return table.needed_by({version, run}, out) != 0;
  };
  keep_needed(out, is_needed);
  return out;
}

}  // namespace

std::vector<VersionNumber> expired(const VersionTable& table, std::uint32_t keep) {
  return expired_with(table, keep, {});
}

Reclaim reclaimable(const VersionTable& table, std::uint32_t keep,
                    std::vector<VersionNumber> recorded_soon) {
  std::vector<VersionNumber> later = expired_with(table, keep, recorded_soon);
  return {expired(table, keep), std::move(later), std::move(recorded_soon)};
}

std::vector<VersionNumber> shared_expired(const VersionTable& table,
                                          const format::CommitRecord& next, std::uint32_t keep) {
  std::vector<StoredVersion> all = {recorded_at(next.version, Level::durable)};
  all.front().record = next;
  for (const auto& [number, row] : table.rows()) {
    if (row.shared && number != next.version && counts(*row.shared)) all.push_back(*row.shared);
  }
  std::ranges::sort(all, {}, &StoredVersion::version);
  std::vector<VersionNumber> out = expired(all, keep, /*announced=*/0);
  // If this host is lost, captured files that are not at home are nowhere else.
  std::erase_if(
      out, [&](VersionNumber version) { return table.is_pinned(version, PinReason::not_home); });
  const auto needs = [](const StoredVersion& stored, VersionNumber version) {
    return std::ranges::find(stored.record.needs, version, &format::Need::version) !=
           stored.record.needs.end();
  };
  // Also what was copied for a version that has not been yet: it goes before that. One that is
  // older than the next one has lost its turn.
  for (const auto& [number, row] : table.rows()) {
    if (row.good() && !row.durable() && number > next.version) all.push_back(*row.disk);
  }
  keep_needed(out, [&](VersionNumber version) {
    return std::ranges::any_of(all, [&](const StoredVersion& stored) {
      return std::ranges::find(out, stored.version) == out.end() && needs(stored, version);
    });
  });
  return out;
}

}  // namespace backstay::agent
