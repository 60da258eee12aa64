#include "simulated_run/promises.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace backstay::simulated {

namespace {

// Differs for each version and rank.
std::vector<std::byte> content(VersionOfRun version, Rank rank, std::size_t bytes) {
  std::uint64_t state =
      version.first * 0x9E3779B97F4A7C15u ^ version.second * 31 ^ (std::uint64_t{rank} + 1) << 40;
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return data;
}

}  // namespace

void Promises::begin_run(RunId run, std::vector<HostId> hosts, std::uint32_t tolerates,
                         protect::Groups groups) {
  Run& begun = runs_[run];
  begun = {std::move(hosts), tolerates, !groups.empty(), std::move(groups)};
  if (begun.parity) return;
  begun.groups.emplace_back(begun.hosts.size());
  std::iota(begun.groups[0].begin(), begun.groups[0].end(), NodeId{0});
}

void Promises::taking(VersionOfRun version, std::vector<std::size_t> bytes, VersionOfRun like,
                      Kept kept) {
  versions_[version].bytes = std::move(bytes);
  versions_[version].like = like;
  versions_[version].kept = std::move(kept);
}

bool Promises::announced(VersionOfRun version, Level level) {
  const auto known = versions_.find(version);
  if (known == versions_.end() || known->second.level >= level) return false;
  known->second.level = level;
  // Retention may remove what is older and no better.
  for (auto& [older, what] : versions_) {
    if (older.first < version.first && what.level <= level) what.superseded = true;
  }
  return true;
}

std::uint32_t Promises::missing(const Run& run, const std::vector<NodeId>& group,
                                const std::set<HostId>& hosts) const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(group, [&](NodeId node) { return !is_here(run.hosts[node], hosts); }));
}

bool Promises::survives(VersionOfRun version, Level level, const std::set<HostId>& hosts) const {
  if (level == Level::durable) return true;
  const Run& run = runs_.at(version.second);
  const std::uint32_t bears = level == Level::protected_ ? run.tolerates : 0;
  return std::ranges::all_of(
      run.groups, [&](const auto& group) { return missing(run, group, hosts) <= bears; });
}

// --- what the disks hold -------------------------------------------------------------------------

Promises::OnDisks Promises::kept(VersionOfRun version, const std::vector<NodeId>& group,
                                 const std::set<HostId>& hosts, const FilesOf& files) const {
  const Run& run = runs_.at(version.second);
  std::map<NodeId, std::uint32_t> copies;
  std::set<NodeId> parity;
  for (const HostId host : hosts) {
    if (lost_.count(host) != 0) continue;
    const FilesHere here = files(host, version.first);
    for (const NodeId node : here.segments) ++copies[node];
    parity.insert(here.parity.begin(), here.parity.end());
  }
  OnDisks kept{missing(run, group, hosts), 0, UINT32_MAX, 0};
  for (const NodeId node : group) {
    kept.members += copies[node] > 0 && parity.contains(node) ? 1 : 0;
    if (copies[node] >= kept.copies_min) continue;
    kept.copies_min = copies[node];
    kept.scarce = node;
  }
  return kept;
}

bool Promises::bears(const Run& run, std::size_t group_size, const OnDisks& kept,
                     std::uint32_t losses) {
  if (kept.copies_min > losses) return true;
  return run.parity && kept.members + run.tolerates >= group_size + losses;
}

bool Promises::is_whole(VersionOfRun version, const std::set<HostId>& hosts,
                        const FilesOf& files) const {
  const Run& run = runs_.at(version.second);
  return std::ranges::all_of(run.groups, [&](const auto& group) {
    return bears(run, group.size(), kept(version, group, hosts, files), 0);
  });
}

bool Promises::is_overtaken(VersionOfRun version, const std::set<HostId>& hosts,
                            const FilesOf& files) const {
  return std::ranges::any_of(versions_, [&](const auto& entry) {
    const VersionNumber number = entry.first.first;
    const auto recorded = [&](HostId host) { return files(host, number).recorded; };
    return number > version.first && std::ranges::any_of(hosts, recorded) &&
           is_whole(entry.first, hosts, files);
  });
}

std::string Promises::endangered(const std::set<HostId>& hosts, const FilesOf& files) const {
  for (const auto& [version, what] : versions_) {
    if (what.superseded || what.level < Level::local || what.level == Level::durable) continue;
    if (!survives(version, what.level, hosts)) continue;  // losses have used it up
    const Run& run = runs_.at(version.second);
    for (const auto& group : run.groups) {
      const OnDisks now = kept(version, group, hosts, files);
      const std::uint32_t left = what.level == Level::protected_ ? run.tolerates - now.lost : 0;
      if (bears(run, group.size(), now, left)) continue;
      if (what.level == Level::local && is_overtaken(version, hosts, files)) break;
      return fmt::format(
          "version {} of run {} was announced at level {} and would not survive {} more losses: "
          "{} disks have the part of node {}, {} nodes of {} have part and parity",
          version.first, version.second, static_cast<int>(what.level), left, now.copies_min,
          now.scarce, now.members, group.size());
    }
  }
  return "";
}

VersionNumber Promises::newest_protected() const {
  VersionNumber newest = 0;
  for (const auto& [version, what] : versions_) {
    if (what.level >= Level::protected_) newest = std::max(newest, version.first);
  }
  return newest;
}

Promises::Owed Promises::owed(const std::set<HostId>& hosts) const {
  for (auto at = versions_.rbegin(); at != versions_.rend(); ++at) {
    const Level level = at->second.level;
    if (level < Level::local || at->second.superseded) continue;
    if (survives(at->first, level, hosts)) return {at->first, level};
  }
  return {};
}

// Chunks of the base, then this.
std::vector<std::byte> Promises::behind(const Kept& kept, Rank rank,
                                        const std::vector<std::byte>& own) const {
  const std::vector<std::byte> base = expected(kept.base, rank);
  std::vector<std::byte> data;
  for (const std::size_t chunk : kept.chunks.at(rank)) {
    const auto at = base.begin() + static_cast<std::ptrdiff_t>(chunk * buffer_bytes);
    data.insert(data.end(), at, at + buffer_bytes);
  }
  data.insert(data.end(), own.begin(), own.end());
  return data;
}

std::vector<std::byte> Promises::expected(VersionOfRun version, Rank rank) const {
  const auto known = versions_.find(version);
  if (known == versions_.end() || rank >= known->second.bytes.size()) return {};
  std::vector<std::byte> data = content(version, rank, known->second.bytes[rank]);
  const Kept& kept = known->second.kept;
  if (kept.base.first != 0) return behind(kept, rank, data);
  const VersionOfRun like = known->second.like;
  if (like.first == 0) return data;
  const std::vector<std::byte> older = expected(like, rank);
  for (std::size_t at = 0; at < std::min(data.size(), older.size()); at += buffer_bytes) {
    const std::size_t length = std::min<std::size_t>(buffer_bytes, data.size() - at);
    if (length > older.size() - at || (version.first + rank + at / buffer_bytes) % 3 == 0) continue;
    std::copy_n(older.begin() + static_cast<std::ptrdiff_t>(at), length,
                data.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return data;
}

std::vector<RunId> Promises::runs() const {
  std::vector<RunId> all;
  for (const auto& [number, run] : runs_) all.push_back(number);
  return all;
}

std::string Promises::describe() const {
  std::string text;
  for (const auto& [number, run] : runs_) {
    text += fmt::format("run {} on hosts {}, tolerates {}\n", number, fmt::join(run.hosts, " "),
                        run.tolerates);
  }
  for (const auto& [key, version] : versions_) {
    text += fmt::format("version {} of run {}: announced {}{}\n", key.first, key.second,
                        static_cast<int>(version.level), version.superseded ? ", superseded" : "");
  }
  return text + fmt::format("disks lost: {}\n", fmt::join(lost_, " "));
}

}  // namespace backstay::simulated
